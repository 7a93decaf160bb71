"""A process that imports what an engine core needs, and becomes one when it is handed the work."""

import contextlib
import gc
import json
import os
import re
import signal
import socket
import sys
import time

ID = "engine-core-imports-early"
# Both import at the same time: with fewer cores they are in one another's way.
FEWEST_CORES = 4
MODULES = (
    "vllm.v1.engine.core",
    "vllm.v1.executor.uniproc_executor",
    "vllm.v1.core.sched.async_scheduler",
    "vllm.v1.worker.gpu_worker",
    "vllm.v1.worker.gpu.model_runner",
    "vllm.model_executor.model_loader.default_loader",
)
COMPILING = ("vllm.compilation.backends", "torch._inductor.compile_fx")
# Libraries read these when they are loaded, which has happened already.
READ_EARLY = ("CUDA_", "LD_", "NVIDIA_", "PYTORCH_", "TORCH_")
PATIENCE = 60.0
TAKEN = "taken"
_SPAWN = re.compile(r"spawn_main\(tracker_fd=(\d+), pipe_handle=(\d+)\)")
_DEATH_SIGNAL = 1
_waiting = None


def begin():
    """Start the process, in an API server with cores to spare; whatever fails here leaves vLLM's own way.

    Collecting garbage takes a fifth of the imports and finds next to none, so it waits for their end.
    """
    global _waiting
    try:
        from sndr_overlay.role import API_SERVER, role

        if role()[0] != API_SERVER:
            return
        gc.disable()
        cores = len(os.sched_getaffinity(0))
        if _waiting is None and cores >= FEWEST_CORES and _on_one_gpu(sys.argv[2:]):
            _waiting = _start(sys.argv[2:])
    except Exception as error:  # noqa: BLE001 - a start without it is slower, and no worse
        sys.stderr.write(f"{ID}: {error!r}\n")


def _start(arguments):
    from multiprocessing import spawn, util

    ours, theirs = socket.socketpair()
    code = "from sndr_overlay_patches.engine_core_imports_early.ahead import become; become({})"
    command = [spawn.get_executable(), *util._args_from_interpreter_flags()]
    command += ["-c", code.format(theirs.fileno()), *arguments]
    try:
        return util.spawnv_passfds(spawn.get_executable(), command, [theirs.fileno()]), ours
    finally:
        theirs.close()


def hand_over(path, arguments, descriptors):
    """Give the work of a spawned process to the one waiting; return its number, or None if it cannot be."""
    global _waiting
    found = _SPAWN.search(" ".join(map(str, arguments)))
    if _waiting is None or found is None:
        return None
    (pid, ours), _waiting = _waiting, None
    tracker, pipe = int(found[1]), int(found[2])
    others = sorted(set(map(int, descriptors)) - {tracker, pipe})
    with ours:
        # More descriptors are known by their numbers in what is sent; a wrapper around Python does something.
        why = f"{len(others) + 2} descriptors for {os.fsdecode(path)}"
        if len(others) == 1 and os.fsdecode(path) == os.fsdecode(sys.executable):
            try:
                socket.send_fds(ours, [b"\0"], [tracker, pipe, others[0]])
                ours.sendall(json.dumps(dict(os.environ)).encode())
                ours.shutdown(socket.SHUT_WR)
                ours.settimeout(PATIENCE)
                why = b"".join(iter(lambda: ours.recv(1 << 12), b"")).decode() or "it has ended"
                if why == TAKEN:
                    return pid
            except OSError as error:
                why = repr(error)
    _note(f"vLLM started the process itself: {why}")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def become(descriptor):
    """Import, wait for the work of an engine core, and do it; without any this process ends."""
    _die_with_parent(signal.SIGKILL)
    began = time.monotonic()
    gc.disable()
    for name in [*MODULES, *_for(sys.argv[1:])]:
        _bring(name)
    gc.enable()
    with contextlib.suppress(ImportError):
        from setproctitle import getproctitle

        # It looks for its place in memory once, and that is behind the environment as it began.
        getproctitle()
    took = time.monotonic() - began
    with socket.socket(fileno=descriptor) as parent:
        first, descriptors, *_ = socket.recv_fds(parent, 1, 3)
        said = b"".join(iter(lambda: parent.recv(1 << 16), b""))
        if not first or len(descriptors) != 3:
            os._exit(0)
        environment = json.loads(said)
        both = sorted({*environment, *os.environ})
        changed = [name for name in both if environment.get(name) != os.environ.get(name)]
        if early := [name for name in changed if name.startswith(READ_EARLY)]:
            parent.sendall(f"changed in between: {', '.join(early)}".encode())
            os._exit(0)
        for name in changed:
            if name in environment:
                os.environ[name] = environment[name]
            else:
                del os.environ[name]
        parent.sendall(TAKEN.encode())
    _die_with_parent(0)
    _take_up(f"its modules were imported in {took:.1f} s beside the API server's")
    from multiprocessing import spawn

    sys.argv = ["-c", "--multiprocessing-fork"]
    spawn.spawn_main(tracker_fd=descriptors[0], pipe_handle=descriptors[1])


def _take_up(told):
    """Take what a process that vLLM spawns would read at its beginning, and its name."""
    from multiprocessing import process

    process.current_process().name = "EngineCore"
    torch = sys.modules.get("torch")
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if torch is not None and threads.isdecimal() and int(threads):
        torch.set_num_threads(int(threads))
    _note(told)


def _note(detail):
    from sndr_overlay.ledger import LEDGER

    LEDGER.write("note", patch=ID, detail=detail)


def _on_one_gpu(arguments):
    """Return True if the model will be in the engine core itself, where the gain was measured."""
    for name in ("--tensor-parallel-size", "--pipeline-parallel-size"):
        with contextlib.suppress(ValueError, IndexError):
            if arguments[arguments.index(name) + 1] != "1":
                return False
    return True


def _for(arguments):
    """Further modules that a start will need, by its arguments: what compiles, and the model's own."""
    names = [] if "--enforce-eager" in arguments else [*COMPILING]
    return [*names, *_of_model(arguments[0] if arguments else "")]


def _of_model(folder):
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            architectures = json.load(file)["architectures"]
        from vllm.model_executor.models.registry import ModelRegistry

        return [ModelRegistry.models[name].module_name for name in architectures]
    except Exception:  # noqa: BLE001 - a model that is not on this disk, or that vLLM knows by another way
        return []


def _bring(name):
    from importlib import import_module

    # The engine core will meet the same error, and say it where it is looked for.
    with contextlib.suppress(Exception):
        import_module(name)


def _die_with_parent(number):
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(number))
