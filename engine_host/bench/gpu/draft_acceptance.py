"""Measure the draft acceptance of the bundled model's trained MTP layer, with and without draft-head-8-bit.

usage: python -m engine_host.bench.gpu.draft_acceptance

vLLM's CPU build answers 48 prompts at temperature 0, 200 tokens each, three drafts a step. Torch computes the
copy's products: Triton's interpreter would take hours for them, and rounds alike.
"""

import json
from typing import Any

from tests.kernel_interpreter import ROOT, interpreter_environment
from tests.overlay_engine import run_in_engine

PATCH = "draft-head-8-bit"
ON_CPU = ("cpu-speculation-sampling", "cpu-one-token-prompt", "compile-cache-on-cpu")
SCRIPT = """
import json, os, sys

STARTS = [
    "Once upon a time there was a", "The little dog ran to", "One day, Lily went to the park with",
    "Tom had a big red ball. He", "Mom said that", "In the forest there lived",
    "The cat sat by the window and",
    "What is the capital of", "Write a story about a bird.", "Tim and Sue were playing when",
    "The sun was shining and", "Ben found a",
]


def by_torch(rows, numbers, steps):
    return (rows.float() @ (numbers.float() * steps[:, None]).T).to(rows.dtype)


def main():
    folder, patched = sys.argv[1], sys.argv[2] == "patched"
    if patched:
        sys.path.append(os.environ["KERNELS"])
        from sndr_overlay_patches.draft_head_8_bit import head

        head.product = by_torch
    from vllm import LLM, SamplingParams

    llm = LLM(
        model=folder, dtype="bfloat16", max_model_len=1024, max_num_seqs=8, enforce_eager=True,
        enable_prefix_caching=False, disable_log_stats=False,
        speculative_config={"method": "mtp", "num_speculative_tokens": 3},
    )
    asked = [start + word for start in STARTS for word in ("", " very", " old", " happy")]
    chosen = SamplingParams(temperature=0, max_tokens=200, ignore_eos=True)
    tokens = [list(one.outputs[0].token_ids) for one in llm.generate(asked, chosen, use_tqdm=False)]
    ends = ("num_draft_tokens", "num_accepted_tokens")
    counts = {one.name: one.value for one in llm.get_metrics() if one.name.endswith(ends)}
    print(json.dumps({"tokens": tokens, "counts": counts}))


if __name__ == "__main__":
    main()
"""


def asked(*patches: str) -> Any:
    """Answers and counts of one engine."""
    kernels = interpreter_environment()["PYTHONPATH"].rpartition(":")[2]
    done = run_in_engine(
        SCRIPT,
        [*ON_CPU, *patches],
        environment={
            "KERNELS": kernels,
            "TRITON_INTERPRET": "1",
            "VLLM_CPU_KVCACHE_SPACE": "2",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        },
        arguments=[str(ROOT / "resources" / "models" / "sndr-demo"), "patched" if patches else "stock"],
        timeout=900,
    )
    assert done.answer is not None
    return done.answer


def main() -> None:
    """Ask both and compare them."""
    stock, copied = asked(), asked(PATCH)
    pairs = zip(stock["tokens"], copied["tokens"], strict=True)
    found = {
        "stock": stock["counts"],
        PATCH: copied["counts"],
        "equal answers": sum(one == two for one, two in pairs),
        "answers": len(stock["tokens"]),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
