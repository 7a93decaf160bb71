"""Measure the memory that vLLM reserves on a GPU at a start: `engine_host.fit` is held to it.

usage: python engine_host/bench/gpu/vllm_starts.py [--out FILE] [--log FILE] [--seconds N] [STARTS.json]

It needs a GPU and vLLM 0.26 or 0.32, no weights and no network: models are config.json files of
tests/unit/fit/shapes, loaded with `--load-format dummy`. STARTS.json is a list of starts as in `planned()`,
which is used without it; or a file with such a list under "starts" (tests/unit/fit/predicted_starts.json),
of which those for the GPUs that are here are made. Each start is a process of its own, whose engine core runs
in that process; it ends when its KV cache is allocated and, where CUDA graphs are on, when they are captured.
One JSON line is written for each start as it ends, so that a run that is cut short keeps what it has.

Sizes are bytes and vLLM's own figures (`gpu_worker.Worker`), beside what torch and the driver say.
"""

import argparse
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SHAPES = Path(__file__).resolve().parents[3] / "tests" / "unit" / "fit" / "shapes"
CONTEXTS = {"qwen3-8b": (8192, 40960), "qwen36-27b": (32768, 262144), "qwen36-35b-a3b": (32768, 262144)}
KV_TYPES = ("auto", "fp8", "turboquant_k8v4")
# FlashInfer compiles its kernels when they are first used, which takes minutes on a bare machine.
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # Workers of several GPUs: a fork would carry CUDA along, and a function travels to them.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
Start = dict[str, Any]
Found = dict[str, Any]


class EndOfMeasurement(BaseException):
    """Everything that is of interest has been measured; vLLM's own handlers let it through."""


def planned() -> Iterator[Start]:
    """Every shape, KV type and context, eager; then with CUDA graphs, other chunks and other streams."""

    def start(shape: str, kv: str = "auto", context: int = 0, **other: Any) -> Start:
        usual = {"streams": 16, "batched_tokens": 8192, "gpu_memory": 0.9, "eager": True}
        return {"shape": shape, "kv": kv, "context": context or CONTEXTS[shape][0], **usual, **other}

    for kv in KV_TYPES:
        yield from (start(shape, kv) for shape in CONTEXTS)
    yield start("qwen3-8b", eager=False)
    yield start("qwen36-35b-a3b", eager=False)
    for kv in KV_TYPES:
        yield from (start(shape, kv, CONTEXTS[shape][1]) for shape in CONTEXTS)
    yield start("qwen3-8b", batched_tokens=2048)
    yield start("qwen3-8b", batched_tokens=2048, streams=512)
    yield start("qwen36-27b", batched_tokens=2048)
    yield start("qwen36-35b-a3b", batched_tokens=2048)
    yield start("qwen36-27b", streams=256, prefix_caching=True)
    yield start("qwen36-27b", eager=False)
    yield start("qwen3-8b", "turboquant_k8v4", eager=False)
    yield start("qwen36-27b", "turboquant_k8v4", eager=False, speculation=3, prefix_caching=False)
    yield start("qwen36-35b-a3b", streams=256, batched_tokens=16384)


def engine_arguments(start: Start, folder: Path) -> dict[str, Any]:
    """The start as arguments of vLLM's `LLM`."""
    arguments: dict[str, Any] = {
        "model": str(folder),
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "kv_cache_dtype": start["kv"],
        "max_model_len": start["context"],
        "max_num_seqs": start["streams"],
        "max_num_batched_tokens": start["batched_tokens"],
        "gpu_memory_utilization": start["gpu_memory"],
        "enforce_eager": start["eager"],
        "enable_prefix_caching": start.get("prefix_caching"),
        "gdn_prefill_backend": "triton",
    }
    if "text_config" in json.loads((folder / "config.json").read_text(encoding="utf-8")):
        arguments["language_model_only"] = True
    if convert := start.get("pooling"):
        arguments |= {"runner": "pooling", "convert": convert}
    if backend := start.get("moe_backend"):
        # FlashInfer's mixtures are compiled for minutes where nothing is cached.
        arguments["moe_backend"] = backend
    if several := start.get("tensor_parallel"):
        arguments["tensor_parallel_size"] = several
    if drafts := start.get("speculation"):
        arguments["speculative_config"] = {"method": "mtp", "num_speculative_tokens": drafts}
    return arguments


def model_config(shape: str) -> dict[str, Any]:
    """The config.json of a shape as vLLM reads it: Qwen3.5's text only inside the whole, Gemma 4's alone."""
    text: dict[str, Any] = json.loads((SHAPES / f"{shape}.json").read_text(encoding="utf-8"))
    if text["model_type"] == "gemma4":
        # Its towers cannot be left out where there is no processor to ask.
        return {**text["text_config"], "architectures": ["Gemma4ForCausalLM"], "tie_word_embeddings": True}
    whole = str(text["model_type"]).removesuffix("_text")
    if whole == text["model_type"]:
        return text
    architecture = str(text["architectures"][0]).replace("ForCausalLM", "ForConditionalGeneration")
    return {
        "architectures": [architecture],
        "model_type": whole,
        "text_config": text,
        "tie_word_embeddings": text["tie_word_embeddings"],
    }


def _non_torch(worker: Any) -> int | None:
    """Return the bytes beside torch's: 0.26 says them, 0.32 what all of it consumed."""
    if hasattr(worker, "non_torch_memory"):
        return int(worker.non_torch_memory)
    return int(worker.total_consumed) - int(worker.model_runner.model_memory_usage)


def measure(start: Start, note: Callable[[Found], None]) -> None:
    """Measure one start in this process; `note` gets each finding. Raises `EndOfMeasurement`."""
    torch = importlib.import_module("torch")
    worker_type = importlib.import_module("vllm.v1.worker.gpu_worker").Worker
    registry: Any = importlib.import_module("vllm.model_executor.models.registry")
    # A model's class is looked at in a process of its own, to keep CUDA out of the first one; this one ends.
    registry._run_in_subprocess = lambda look: look()
    began = time.monotonic()

    def since() -> float:
        return round(time.monotonic() - began, 1)

    def profile(worker: Any) -> int:
        runner = worker.model_runner
        sampler = runner._dummy_sampler_run
        note({"load_s": since(), "runner": type(runner).__module__})

        def sampled(*given: Any, **named: Any) -> Any:
            note({"forward_peak": torch.cuda.max_memory_allocated(), "held": torch.cuda.memory_allocated()})
            answer = sampler(*given, **named)
            note({"sampler_peak": torch.cuda.max_memory_allocated()})
            return answer

        runner._dummy_sampler_run = sampled
        note({"allocated_before": torch.cuda.memory_allocated()})
        available = int(own_profile(worker))
        before = worker.init_snapshot
        free, total = torch.cuda.mem_get_info()
        note(
            {
                "profile_s": since(),
                "total": before.total_memory,
                "free_at_start": before.free_memory,
                "non_torch_at_start": before.non_torch_memory,
                "requested": worker.requested_memory,
                "weights": int(runner.model_memory_usage),
                "activations": worker.peak_activation_memory,
                "non_torch": _non_torch(worker),
                "graphs_estimate": worker.cudagraph_memory_estimate,
                "available": available,
                "allocated_after": torch.cuda.memory_allocated(),
                "used_after_profile": total - free,
            }
        )
        return available

    def allocate(worker: Any, config: Any) -> None:
        cache = worker.vllm_config.cache_config
        note(
            {
                "blocks": config.num_blocks,
                "kv_bytes": sum(tensor.size for tensor in config.kv_cache_tensors),
                "block_tokens": cache.block_size,
                "kv_tokens": cache.kv_cache_size_tokens,
                "concurrency": cache.kv_cache_max_concurrency,
                "prefix_caching_used": cache.enable_prefix_caching,
                "state_mode": cache.mamba_cache_mode,
                "state_page_padded": cache.mamba_page_size_padded,
                "groups": [_group(group) for group in config.kv_cache_groups],
            }
        )
        own_allocate(worker, config)
        free, total = torch.cuda.mem_get_info()
        note({"used_with_kv": total - free})

    def warm_up(worker: Any) -> Any:
        if start["eager"]:
            raise EndOfMeasurement
        capture = worker.model_runner.capture_model

        def captured(*given: Any, **named: Any) -> Any:
            size = capture(*given, **named)
            note({"graphs": int(size), "capture_s": since()})
            return size

        worker.model_runner.capture_model = captured
        own_warm_up(worker)
        free, total = torch.cuda.mem_get_info()
        note({"used_at_end": total - free})
        raise EndOfMeasurement

    own_profile, own_allocate = worker_type.determine_available_memory, worker_type.initialize_from_config
    own_warm_up = worker_type.compile_or_warm_up_model
    worker_type.determine_available_memory, worker_type.initialize_from_config = profile, allocate
    worker_type.compile_or_warm_up_model = warm_up
    if str(start["kv"]).startswith("turboquant"):
        _name_turboquant(str(start["kv"]))
    note({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__})
    vllm = importlib.import_module("vllm")
    note({"vllm": vllm.__version__})
    # vLLM finds its compiled graphs again by the model's path among others, so that it stays the same.
    folder = Path(tempfile.gettempdir()) / "vllm-starts" / start["shape"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model_config(start["shape"])), encoding="utf-8")
    engine = vllm.LLM(**engine_arguments(start, folder))
    # With several GPUs the workers are processes of their own, which say less.
    cache = engine.llm_engine.vllm_config.cache_config
    weights = engine.collective_rpc(_weights)
    note({"blocks": cache.num_gpu_blocks, "kv_tokens": cache.kv_cache_size_tokens, "weights": max(weights)})
    raise EndOfMeasurement


def _weights(worker: Any) -> int:
    return int(worker.model_runner.model_memory_usage)


def _name_turboquant(kv: str) -> None:
    """Tell TurboQuant its own name: 0.26 calls it `auto` in the runner of hybrids, and ends there."""
    backend = importlib.import_module("vllm.v1.attention.backends.turboquant_attn").TurboQuantAttentionBackend
    own = backend.get_kv_cache_shape

    def shape(*given: Any, cache_dtype_str: str = kv, **named: Any) -> Any:
        return own(*given, cache_dtype_str=kv if cache_dtype_str == "auto" else cache_dtype_str, **named)

    backend.get_kv_cache_shape = staticmethod(shape)


def _group(group: Any) -> Found:
    spec = group.kv_cache_spec
    return {
        "layers": len(group.layer_names),
        "kind": type(spec).__name__,
        "block_tokens": spec.block_size,
        "page_bytes": spec.page_size_bytes,
    }


def can_fork() -> bool:
    """Return True if a fork of this process can open the GPU; not if an import has opened it here."""
    torch = importlib.import_module("torch")
    child = os.fork()
    if child == 0:
        try:
            torch.zeros(1, device="cuda")
        except BaseException:  # noqa: BLE001 - torch's own errors; that there was one is the answer
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def in_own_process(start: Start, limit: float, log: Path, forks: bool) -> Found:
    """Run `measure` in a process of its own, forked where that works, so that vLLM is imported once."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        notes = Path(temporary) / "notes"
        child = os.fork() if forks else _spawned(start, notes, log)
        if child == 0:
            os.setsid()
            _child(start, notes, log)
        deadline = began + limit
        done = 0
        while not done and time.monotonic() < deadline:
            done, _ = os.waitpid(child, os.WNOHANG)
            time.sleep(0.05)
        if not done:
            (os.killpg if forks else os.kill)(child, signal.SIGKILL)
            os.waitpid(child, 0)
        lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    found: Found = {"start": start, "seconds": round(time.monotonic() - began, 1)}
    for line in lines:
        found.update(json.loads(line))
    if not done:
        found["error"] = f"ended after {limit:.0f} s"
    return found


def _spawned(start: Start, notes: Path, log: Path) -> int:
    command = [sys.executable, __file__, "--one", json.dumps(start), str(notes), "--log", str(log)]
    return os.spawnv(os.P_NOWAIT, sys.executable, command)


def _child(start: Start, notes: Path, log: Path) -> None:
    """Never returns: whatever happens, this process ends here and not in its parent's code."""
    try:
        with log.open("a", encoding="utf-8") as written, notes.open("a", encoding="utf-8") as noted:
            written.write(f"\n===== {json.dumps(start)}\n")
            written.flush()
            os.dup2(written.fileno(), 1)
            os.dup2(written.fileno(), 2)

            def note(found: Found) -> None:
                noted.write(json.dumps(found) + "\n")
                noted.flush()

            try:
                measure(start, note)
            except EndOfMeasurement:
                pass
            except BaseException as error:  # noqa: BLE001 - vLLM's code; what went wrong is the result
                traceback.print_exc()
                note({"error": f"{type(error).__name__}: {error}"[:400]})
    finally:
        os._exit(0)


def main() -> None:
    """Measure the starts of the plan one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("starts", nargs="?", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("starts.jsonl"))
    parser.add_argument("--log", type=Path, default=Path("starts.log"))
    parser.add_argument("--seconds", type=float, default=3600, help="no start begins later than this")
    parser.add_argument("--first", type=int, default=0, help="leave out so many starts of the plan")
    parser.add_argument("--number", type=int, default=1000, help="make at most so many")
    parser.add_argument("--only", nargs="+", metavar="SHAPE", help="of these shapes alone")
    args = parser.parse_args()
    os.environ.update({name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()})
    if args.one:
        _child(json.loads(args.one[0]), Path(args.one[1]), args.log)
    deadline = time.monotonic() + args.seconds
    plan = json.loads(args.starts.read_text(encoding="utf-8")) if args.starts else list(planned())
    if isinstance(plan, dict):
        gpus = importlib.import_module("torch").cuda.device_count()
        plan = [start for start in plan["starts"] if start.get("tensor_parallel", 1) <= gpus]
    if args.only:
        plan = [start for start in plan if start["shape"] in args.only]
    for module in ("vllm.v1.worker.gpu_worker", "vllm.v1.engine.core", "vllm.entrypoints.llm"):
        importlib.import_module(module)
    forks = can_fork()
    print(f"imported after {args.seconds - (deadline - time.monotonic()):.0f} s, forks: {forks}", flush=True)
    for start in plan[args.first : args.first + args.number]:
        left = deadline - time.monotonic()
        if left < 8:
            break
        found = in_own_process(start, left, args.log, forks)
        with args.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps(found) + "\n")
        short = {
            name: found.get(name) for name in ("seconds", "blocks", "block_tokens", "available", "error")
        }
        print(json.dumps([*start.values()]), json.dumps(short), flush=True)


if __name__ == "__main__":
    main()
