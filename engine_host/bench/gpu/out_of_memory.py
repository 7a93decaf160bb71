"""Let a step of vLLM run out of GPU memory in truth, and see whether the next request is answered.

usage: python -m engine_host.bench.gpu.out_of_memory SHAPE [--tensor-parallel 2] [--only-rank N] [--left 200]
                     [--kv auto] [--out FILE]

SHAPE is a file of tests/unit/fit/shapes, with random weights. When the engine is there, each rank (or one,
with `--only-rank`) takes its GPU's memory but for `--left` MiB; then a prompt of a whole step is asked, which
needs more, then a short one, and, when the memory is given back, the long one again. Whether
`oom-keeps-engine` takes part is chosen from outside, by the overlay's variables. One JSON object is written:
what each request came to, in order, and how long it took.
"""

import argparse
import importlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from engine_host.bench.gpu.vllm_starts import ENVIRONMENT, model_config

STEP = 8192
_MIB = 2**20


def take(worker: Any, left: int, only: int | None) -> int:
    """Run in a worker: take what is free of its GPU but for so many bytes; return what was free."""
    torch = importlib.import_module("torch")
    torch.cuda.empty_cache()
    free = int(torch.cuda.mem_get_info()[0])
    if only is None or worker.rank == only:
        worker.sndr_ballast = torch.empty(max(free - left, 0), dtype=torch.uint8, device="cuda")
    return free


def give_back(worker: Any) -> None:
    """Run in a worker: end what `take` began."""
    worker.sndr_ballast = None
    importlib.import_module("torch").cuda.empty_cache()


class Asked:
    """An engine, and what its requests came to."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self._vllm = importlib.import_module("vllm")
        self.told: list[dict[str, Any]] = []
        self.engine = self._vllm.LLM(
            model=str(folder),
            load_format="dummy",
            skip_tokenizer_init=True,
            kv_cache_dtype=args.kv,
            tensor_parallel_size=args.tensor_parallel,
            max_model_len=2 * STEP,
            max_num_seqs=4,
            max_num_batched_tokens=STEP,
            gpu_memory_utilization=0.5,
            kv_cache_memory_bytes=4 * 2**30,
            enforce_eager=True,
            enable_prefix_caching=False,
        )

    def ask(self, what: str, tokens: int) -> bool:
        """Ask a prompt of so many tokens; whether it was answered."""
        params = self._vllm.SamplingParams(max_tokens=8, temperature=0, ignore_eos=True, detokenize=False)
        began = time.monotonic()
        try:
            prompt = {"prompt_token_ids": [10 + place % 1000 for place in range(tokens)]}
            said = self.engine.generate([prompt], params, use_tqdm=False)[0].outputs[0]
            found: dict[str, Any] = {"ended": str(said.finish_reason), "tokens": len(said.token_ids)}
        except Exception as error:  # noqa: BLE001 - vLLM's own; that it came to this is the finding
            found = {"ended": type(error).__name__, "tokens": 0, "said": str(error)[:300]}
        seconds = round(time.monotonic() - began, 2)
        self.told.append({"request": what, "prompt": tokens, **found, "seconds": seconds})
        print(json.dumps(self.told[-1]), flush=True)
        return bool(found["tokens"] == 8)


def main() -> int:
    """Ask, run out of memory, ask again; 1 when a request that has room was not answered."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shape")
    parser.add_argument("--tensor-parallel", type=int, default=1)
    parser.add_argument("--only-rank", type=int)
    parser.add_argument("--left", type=int, default=200)
    parser.add_argument("--kv", default="auto")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / args.shape
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(model_config(args.shape)), encoding="utf-8")
        asked = Asked(args, folder)
        before = asked.ask("before", STEP)
        free = asked.engine.collective_rpc(take, args=(args.left * _MIB, args.only_rank))
        long = asked.ask("long, without memory", STEP)
        short = asked.ask("short, without memory", 16)
        after = False
        if short:
            asked.engine.collective_rpc(give_back)
            after = asked.ask("long again, with memory", STEP)
    report = {
        "shape": args.shape,
        "kv": args.kv,
        "tensor_parallel": args.tensor_parallel,
        "only_rank": args.only_rank,
        "free": [int(one) for one in free],
        "left": args.left * _MIB,
        "ran_out": before and not long,
        "goes_on": short and after,
        "requests": asked.told,
    }
    print(json.dumps(report), flush=True)
    if args.out:
        args.out.write_text(json.dumps(report, indent=1), encoding="utf-8")
    return 0 if report["ran_out"] and report["goes_on"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
