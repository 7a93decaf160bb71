"""Measure the time to first token of a conversation's next turn, by its length: what a prefix cache is for.

usage: python -m engine_host.bench.gpu.prefix_turns SHAPE [--lengths 8192 32768 131072] [--drafts 3]
                     [--without | --reuse] [--kv auto] [--new 500] [--turns 5] [--out FILE]

SHAPE is a file of tests/unit/fit/shapes, with random weights. A prompt of so many tokens is read, and then
asked again several times, each time with the answer so far and `--new` tokens more; one request at a time.
`--reuse` is as in prefix_conversations. One JSON line a length: seconds to the first token of the first turn
and the median, least and most of the next ones, and how many of their tokens vLLM found in its cache.
"""

import argparse
import importlib
import json
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from engine_host.bench.gpu.vllm_speed import Case, engine_arguments
from engine_host.bench.gpu.vllm_starts import ENVIRONMENT, model_config

ANSWER = 64
_WARM_UP = 2048


class Turns:
    """One engine that is asked turn after turn."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self._vllm = importlib.import_module("vllm")
        arguments = engine_arguments(args, folder)
        arguments |= {"enable_prefix_caching": not args.without, "max_num_seqs": 2}
        arguments["max_model_len"] = max(args.lengths) + (args.new + ANSWER) * (args.turns + 1) + 256
        if args.reuse:
            arguments["prefix_cache_retention_interval"] = None
            if args.drafts:
                arguments["speculative_config"]["disable_eagle_block_drop"] = True
        self._engine = self._vllm.LLM(**arguments).llm_engine
        self._draw = random.Random(0)
        self._asked = 0

    @property
    def block(self) -> int:
        """Tokens of one block of the cache."""
        return int(self._engine.vllm_config.cache_config.block_size)

    def tokens(self, count: int) -> list[int]:
        """So many tokens that nothing has seen."""
        vocabulary = self._engine.model_config.get_vocab_size()
        return [self._draw.randrange(10, vocabulary) for _ in range(count)]

    def ask(self, prompt: list[int]) -> tuple[float, int, list[int]]:
        """Return seconds to the first token, tokens found in the cache, and the answer."""
        self._asked += 1
        params = self._vllm.SamplingParams(
            temperature=0, max_tokens=ANSWER, ignore_eos=True, detokenize=False
        )
        began, first = time.perf_counter(), 0.0
        self._engine.add_request(str(self._asked), {"prompt_token_ids": prompt}, params)
        cached, answer = 0, [0]
        while self._engine.has_unfinished_requests():
            for output in self._engine.step():
                first = first or time.perf_counter() - began
                cached, answer = output.num_cached_tokens or 0, list(output.outputs[0].token_ids)
        return first, cached, answer

    def conversation(self, length: int, new: int, turns: int) -> dict[str, Any]:
        """Hold one of so many tokens, and then so many turns with new ones."""
        prompt = self.tokens(length)
        first, _, answer = self.ask(prompt)
        seconds, found, shared = [], 0, 0
        for _ in range(turns):
            # The last token of an answer is never read by the model.
            shared += len(prompt) + len(answer) - 1
            prompt = [*prompt, *answer, *self.tokens(new)]
            took, cached, answer = self.ask(prompt)
            seconds.append(took)
            found += cached
        return {
            "length": length,
            "first_turn_s": round(first, 4),
            "next_turn_s": round(statistics.median(seconds), 4),
            "least_s": round(min(seconds), 4),
            "most_s": round(max(seconds), 4),
            "turns": turns,
            "cached_tokens": found,
            "shared_tokens": shared,
        }


def main() -> None:
    """Measure every length on one engine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shape")
    parser.add_argument("--lengths", type=int, nargs="+", default=[8192, 32768, 131072])
    parser.add_argument("--kv", default="auto")
    parser.add_argument("--drafts", type=int, default=3)
    parser.add_argument("--new", type=int, default=500)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path)
    caching = parser.add_mutually_exclusive_group()
    caching.add_argument("--without", action="store_true")
    caching.add_argument("--reuse", action="store_true")
    args = parser.parse_args()
    os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})
    # What a decode of one stream needs of the common arguments.
    common = {"cases": [Case(1, max(args.lengths))], "acceptance": 3.0, "eager": False, "compile": False}
    for name, value in (common | {"tensor_parallel": 1}).items():
        setattr(args, name, value)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / args.shape
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(model_config(args.shape)), encoding="utf-8")
        engine = Turns(args, folder)
        engine.conversation(_WARM_UP, args.new, 2)
        mode = "off" if args.without else "reuse" if args.reuse else "as vLLM does"
        for length in args.lengths:
            found = {"shape": args.shape, "caching": mode, "block": engine.block, "drafts": args.drafts}
            line = json.dumps(found | engine.conversation(length, args.new, args.turns))
            print(line, flush=True)
            if args.out:
                with args.out.open("a", encoding="utf-8") as out:
                    out.write(line + "\n")


if __name__ == "__main__":
    main()
