"""A Python that has imported what vLLM is built on, and forks a child for each script that it is sent.

Runs inside a vLLM environment; tests/vllm_scripts.py starts it. vLLM itself is not imported here: each child
imports it anew, with the patches of its own bundle, so no test sees what another one did. Two thirds of the
time to import vLLM are PyTorch, transformers and the like, and these are shared. So it is with
the processes that a script has multiprocessing start anew: each is a fork of what the script was at first.

One line of JSON on stdin for each script; on stdout a line when its child began (its process
id), and one when it ended (its exit code).
"""

import contextlib
import importlib
import json
import os
import socket
import sys
from multiprocessing import context, forkserver, get_context, resource_tracker, spawn
from types import ModuleType
from typing import Any

SHARED = (
    "torch._dynamo",
    "torch._inductor",
    "sympy",
    "torchvision",
    "transformers",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.processing_auto",
    "openai.types.responses",
    "fastapi",
    "aiohttp",
    "prometheus_client",
)


def child_of_next_script() -> dict[str, Any]:
    """Return in a child, with what it shall do; the server itself ends with its input."""
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if pid == 0:
            return asked
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    os._exit(0)


def become(asked: dict[str, Any]) -> None:
    """Look like a process that was started for this script alone: files, folder, variables, search path."""
    os.setsid()
    for descriptor, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, asked["stdout"], os.O_WRONLY | os.O_CREAT),
        (2, asked["stderr"], os.O_WRONLY | os.O_CREAT),
    ):
        file = os.open(name, flags, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["variables"])
    sys.argv = [asked["script"], *asked["arguments"]]
    sys.path[:1] = [os.path.dirname(asked["script"]), *_search_path()]
    importlib.invalidate_caches()
    # What torch found out about Triton before the script's own search path was there.
    for known in vars(sys.modules["torch.utils._triton"]).values():
        if hasattr(known, "cache_clear"):
            known.cache_clear()
    if os.environ.get("SNDR_OVERLAY"):
        # As the line in site-packages does it when Python starts.
        importlib.import_module("sndr_overlay.start")


def _search_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def spawn_by_forks() -> None:
    """Keep this state in a server of multiprocessing, whose forks are what `spawn` starts from now on."""
    ours: Any = forkserver._forkserver
    contexts: Any = context
    started: Any = spawn
    # One server for all: children of children ask it too, and Python would start another one for them.
    ours.ensure_running = resource_tracker.ensure_running
    plain_data, plain_prepare = started.get_preparation_data, started.prepare

    def data_and_variables(name: str) -> dict[str, Any]:
        return {**plain_data(name), "variables": dict(os.environ)}

    def prepare(data: dict[str, Any]) -> None:
        os.environ.clear()
        os.environ.update(data["variables"])
        plain_prepare(data)

    started.get_preparation_data, started.prepare = data_and_variables, prepare
    contexts._concrete_contexts["spawn"] = contexts._concrete_contexts["forkserver"]
    resource_tracker.ensure_running()
    listener = socket.socket(socket.AF_UNIX)
    # The kernel finds a name of no file, so nothing of it stays and nobody else has it.
    listener.bind("")
    listener.listen()
    ended, alive = os.pipe()
    if os.fork() == 0:
        os.close(alive)
        try:
            forkserver.main(listener.detach(), ended, [])
        finally:
            os._exit(0)
    os.close(ended)
    ours._forkserver_address, ours._forkserver_alive_fd = listener.getsockname(), alive
    listener.close()


def run(script: str) -> None:
    """Run a file as the main program; multiprocessing finds it in its children by its name."""
    main = ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    with open(script, encoding="utf-8") as file:
        code = compile(file.read(), script, "exec")
    exec(code, vars(main))


def import_shared() -> None:
    """Import what vLLM is built on, as far as it is there."""
    for name in SHARED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def share_with_children() -> None:
    """In an API server that has just begun: import before it does, for its engine core and worker too."""
    # A folder of packages that is reached by two names has its lines run twice.
    if "serve" in sys.orig_argv and not isinstance(get_context("spawn"), context.ForkServerContext):
        import_shared()
        spawn_by_forks()


if __name__ == "__main__":
    import_shared()
    task = child_of_next_script()
    become(task)
    spawn_by_forks()
    run(task["script"])
