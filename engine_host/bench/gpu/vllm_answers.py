"""Compare vLLM's answers with and without drafts, token by token: the table in docs/kernels.md.

usage: python -m engine_host.bench.gpu.vllm_answers ask OUT.json [--head 128] [--kv auto] [--drafts 3]
                                    [--eager] [--sync] [--chunk 1024] [--flash-attention 2]
       python -m engine_host.bench.gpu.vllm_answers compare WITHOUT.json WITH.json ...

It needs a GPU and vLLM; the model is made on the spot (tiny_mtp_model.py). What is compared is
chosen from outside: VLLM_BATCH_INVARIANT, and the overlay's variables for patches.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from engine_host.bench.gpu.token_answers import differing, prompts

MODEL = Path(__file__).with_name("tiny_mtp_model.py")
TOKENS = 200
REQUESTS = 16


def ask(args: argparse.Namespace) -> dict[str, Any]:
    """Answers of one engine, how far its two best tokens were apart, and how many drafts it took."""
    vllm = importlib.import_module("vllm")
    folder = Path(tempfile.gettempdir()) / f"vllm-answers-{args.head}"
    subprocess.run([sys.executable, str(MODEL), str(folder), str(args.head)], check=True)
    arguments: dict[str, Any] = {}
    if args.drafts:
        arguments["speculative_config"] = {"method": "mtp", "num_speculative_tokens": args.drafts}
    if not args.eager:
        arguments["compilation_config"] = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}
    if args.flash_attention:
        arguments["attention_config"] = {"flash_attn_version": args.flash_attention}
    engine = vllm.LLM(
        model=str(folder),
        kv_cache_dtype=args.kv,
        max_model_len=4096,
        max_num_seqs=REQUESTS,
        max_num_batched_tokens=args.chunk,
        kv_cache_memory_bytes=1 << 30,
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
        enforce_eager=args.eager,
        async_scheduling=not args.sync,
        disable_log_stats=False,
        **arguments,
    )
    # Drafting leaves out log-probabilities; without it they say how near a decision was.
    chosen = vllm.SamplingParams(
        temperature=0,
        max_tokens=TOKENS,
        ignore_eos=True,
        detokenize=False,
        logprobs=None if args.drafts else 2,
    )
    prompt_inputs = [{"prompt_token_ids": prompt} for prompt in prompts()]
    outputs = [done.outputs[0] for done in engine.generate(prompt_inputs, chosen, use_tqdm=False)]
    names = ("num_draft_tokens", "num_accepted_tokens")
    return {
        "asked": {name: value for name, value in vars(args).items() if name not in {"out", "do"}},
        "tokens": [list(one.token_ids) for one in outputs],
        "gaps": None if args.drafts else [_gaps(one.logprobs) for one in outputs],
        "drafts": {one.name: one.value for one in engine.get_metrics() if one.name.endswith(names)},
    }


def _gaps(positions: Any) -> list[float]:
    best = [sorted((one.logprob for one in known.values()), reverse=True)[:2] for known in positions]
    return [round(first - second, 4) for first, second in best]


def compare(without: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Count the equal answers; list the first differing position and the logprob gap there of the others."""
    gaps, found = without["gaps"], differing(without["tokens"], other["tokens"])
    near = [(place, gaps[index][place] if place < len(gaps[index]) else None) for index, place in found]
    total = len(without["tokens"])
    return {
        "equal": total - len(near),
        "of": total,
        "differing": near,
        "asked": other["asked"],
        "drafts": other["drafts"],
    }


def main() -> None:
    """Ask one engine, or compare what several answered."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="do", required=True)
    one = commands.add_parser("ask")
    one.add_argument("out", type=Path)
    one.add_argument("--head", type=int, default=128, choices=(64, 128, 256))
    one.add_argument("--kv", default="auto")
    one.add_argument("--drafts", type=int, default=0)
    one.add_argument("--eager", action="store_true")
    one.add_argument("--sync", action="store_true")
    one.add_argument("--chunk", type=int, default=1024)
    one.add_argument("--flash-attention", type=int)
    several = commands.add_parser("compare")
    several.add_argument("without", type=Path)
    several.add_argument("others", type=Path, nargs="+")
    args = parser.parse_args()
    if args.do == "ask":
        os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
        args.out.write_text(json.dumps(ask(args)), encoding="utf-8")
        return
    without = json.loads(args.without.read_text(encoding="utf-8"))
    for other in args.others:
        print(json.dumps(compare(without, json.loads(other.read_text(encoding="utf-8")))), flush=True)


if __name__ == "__main__":
    main()
