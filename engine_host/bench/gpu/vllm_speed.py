"""Measure vLLM's prefill and its decode at a depth, with random weights: a table of docs/kernels.md.

usage: python -m engine_host.bench.gpu.vllm_speed SHAPE [--kv turboquant_k8v4] [--cases 1x32768 16x32768]
                                        [--drafts 3] [--acceptance 3.0] [--eager | --compile]
                                        [--tensor-parallel 1] [--profile] [--out FILE]

SHAPE is a file of tests/unit/fit/shapes (mimo-7b, qwen3-8b, qwen36-27b, qwen36-35b-a3b) or the path of
another config.json. It needs a GPU and vLLM, no weights and no network. Which patches take part is chosen
from outside, by the overlay's variables; what was measured is one JSON line a case. A case `16x32768` sends
sixteen prompts of 32,768 random tokens at once, and counts decode only while all sixteen answers grow: what
the first of them get while the last prompt is read comes on top of the length of an answer. In
`16x2048,131072` one of the sixteen has 131,072 tokens.
`--compile` lets vLLM compile the model with inductor, as it does by itself. `--profile` adds which kernels a
step of decode consists of, recorded after the steps that are counted.
"""

import argparse
import importlib
import json
import math
import os
import random
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from engine_host.bench.gpu.step_profile import Recorder, StepProfile
from engine_host.bench.gpu.vllm_starts import ENVIRONMENT, SHAPES, model_config

ANSWER = 260
CHUNK = 8192
# The first steps after the last prompt still wait for its work.
SETTLING = 3
PROFILED = 16


@dataclass(frozen=True, slots=True)
class Step:
    """The state after one step of the engine: seconds, tokens of all answers, answers that still grow."""

    at: float
    tokens: int
    growing: int


@dataclass(frozen=True, slots=True)
class Case:
    """A load: so many prompts of so many tokens at once, of which the last one may be longer."""

    streams: int
    context: int
    longest: int = 0

    @property
    def prompts(self) -> list[int]:
        """The tokens of each prompt."""
        return [self.context] * (self.streams - 1) + [self.longest or self.context]

    def answer(self, length: int, drafts: int) -> int:
        """Tokens of an answer, so that so many are left when the last prompt is read."""
        return length + sum(math.ceil(tokens / CHUNK) for tokens in self.prompts[1:]) * (drafts + 1)

    @classmethod
    def read(cls, text: str) -> "Case":
        """From `16x32768` or `16x2048,131072`. Raises ValueError."""
        streams, _, tokens = text.partition("x")
        context, _, longest = tokens.partition(",")
        return cls(int(streams), int(context), int(longest or 0))


@dataclass(frozen=True, slots=True)
class Speed:
    """Prompt tokens a second, milliseconds for a token of every stream, and steps that were counted.

    A step's median and its longest time are told too: a compilation or another program can hold up one step.
    """

    prefill_rate: int
    ms_a_token: float
    steps: int
    median_step_ms: float
    longest_step_ms: float


def speed_of(case: Case, started: float, steps: list[Step], first: float) -> Speed:
    """The speed from the steps of a case; `first` is when every answer had its first token.

    Raises ValueError when no two steps had all answers growing.
    """
    full = [step for step in steps if step.at >= first and step.growing == case.streams][SETTLING:]
    if len(full) < 2:
        raise ValueError(f"{case.streams} answers grew together for fewer than {SETTLING + 2} steps")
    seconds, tokens = full[-1].at - full[0].at, full[-1].tokens - full[0].tokens
    times = [1000 * (after.at - before.at) for before, after in pairwise(full)]
    return Speed(
        round(sum(case.prompts) / (first - started)),
        round(1000 * seconds * case.streams / tokens, 3),
        len(times),
        round(statistics.median(times), 3),
        round(max(times), 3),
    )


def engine_arguments(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The engine's arguments: graphs for the sizes that occur, and drafts that are accepted as asked."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    rows = sorted({case.streams * n for case in args.cases for n in {1, args.drafts + 1}})
    arguments: dict[str, Any] = {
        "model": str(folder),
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "kv_cache_dtype": args.kv,
        "quantization": args.quantization,
        "tensor_parallel_size": args.tensor_parallel,
        "max_model_len": max(max(case.prompts) + case.answer(ANSWER, args.drafts) for case in args.cases)
        + 256,
        "max_num_seqs": max(case.streams for case in args.cases),
        "max_num_batched_tokens": CHUNK,
        "gpu_memory_utilization": 0.92,
        "enable_prefix_caching": False,
        "gdn_prefill_backend": "triton",
        "enforce_eager": args.eager,
        "disable_log_stats": False,
    }
    if not args.eager:
        graphs = {
            "mode": 3 * args.compile,
            "cudagraph_mode": "FULL_DECODE_ONLY",
            "cudagraph_capture_sizes": rows,
        }
        arguments["compilation_config"] = graphs
    if "text_config" in config:
        arguments["language_model_only"] = True
    if args.drafts:
        arguments["speculative_config"] = {
            "method": "mtp",
            "num_speculative_tokens": args.drafts,
            # Random weights agree on nothing: the engine accepts as many as it is told to.
            "rejection_sample_method": "synthetic",
            "synthetic_acceptance_length": args.acceptance,
        }
    return arguments


class Bench:
    """One engine, driven step by step."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self._vllm = importlib.import_module("vllm")
        self._llm = self._vllm.LLM(**engine_arguments(args, folder))
        self._engine = self._llm.llm_engine
        self._draw = random.Random(0)
        self._named = 0
        self.profile: StepProfile | None = None

    def run(self, case: Case, answer: int, recorder: Recorder | None = None) -> dict[str, Any]:
        """Send the prompts of a case and follow the answers to their end; then profile some steps more."""
        self.profile = None
        vocabulary = self._engine.model_config.get_vocab_size()
        chosen = self._vllm.SamplingParams(
            temperature=0,
            # Room for the steps that are profiled, each of which may take every draft.
            max_tokens=answer + (8 * PROFILED + 8 if recorder else 0),
            ignore_eos=True,
            detokenize=False,
        )
        lengths: dict[str, int] = {}
        for tokens in case.prompts:
            self._named += 1
            lengths[str(self._named)] = 0
            prompt = [self._draw.randrange(10, vocabulary) for _ in range(tokens)]
            self._engine.add_request(str(self._named), {"prompt_token_ids": prompt}, chosen)
        steps: list[Step] = []
        started, first, before = time.perf_counter(), 0.0, (0, 0)
        while self._engine.has_unfinished_requests():
            for output in self._engine.step():
                lengths[output.request_id] = len(output.outputs[0].token_ids)
            now = time.perf_counter()
            if not first and all(lengths.values()):
                first, before = now, self._drafted()
            growing = sum(length < answer for length in lengths.values())
            steps.append(Step(now, sum(lengths.values()), growing))
            if recorder and first and growing < case.streams:
                self._profile(recorder)
                recorder = None
        speed = speed_of(case, started, steps, first)
        accepted, drafts = (after - then for after, then in zip(self._drafted(), before, strict=True))
        length = round(1 + accepted / drafts, 3) if drafts else None
        return asdict(case) | asdict(speed) | {"acceptance_length": length}

    def _profile(self, recorder: Recorder) -> None:
        try:
            recorder.start()
            for _ in range(PROFILED):
                self._engine.step()
            self.profile = recorder.stop(PROFILED)
        except RuntimeError as error:
            # Torch without CUPTI: what was timed before is kept.
            print(f"no profile: {error}", flush=True)

    def _drafted(self) -> tuple[int, int]:
        """Accepted draft tokens, and drafts, since the start."""
        found = {
            one.name: one.value
            for one in self._llm.get_metrics()
            if "spec_decode_num" in one.name and hasattr(one, "value")
        }
        names = ("vllm:spec_decode_num_accepted_tokens", "vllm:spec_decode_num_drafts")
        return int(found.get(names[0], 0)), int(found.get(names[1], 0))


def main() -> None:
    """Measure every case on one engine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shape")
    parser.add_argument("--kv", default="auto")
    parser.add_argument("--cases", type=Case.read, nargs="+", default=[Case(1, 32768), Case(16, 32768)])
    parser.add_argument("--drafts", type=int, default=0)
    parser.add_argument("--acceptance", type=float, default=3.0)
    parser.add_argument("--tensor-parallel", type=int, default=1)
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--eager", action="store_true")
    modes.add_argument("--compile", action="store_true")
    parser.add_argument("--quantization", help="of weights, made from 16 bits at the start: fp8")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})
    shape_file = Path(args.shape)
    if shape_file.is_file():
        config = json.loads(shape_file.read_text(encoding="utf-8"))
    elif (SHAPES / f"{args.shape}.json").is_file():
        config = model_config(args.shape)
    else:
        known = ", ".join(sorted(path.stem for path in SHAPES.glob("*.json")))
        parser.error(f"{args.shape} is neither a file nor one of {known}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / shape_file.stem
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        bench = Bench(args, folder)
        # Kernels that are compiled when they are first used are not the case's time.
        bench.run(Case(1, min(9000, max(max(case.prompts) for case in args.cases))), answer=40)
        for case in args.cases:
            recorder = Recorder() if args.profile else None
            found = {"shape": shape_file.stem, "kv": args.kv, "drafts": args.drafts, "compile": args.compile}
            found |= {"tensor_parallel": args.tensor_parallel, "quantization": args.quantization}
            found |= bench.run(case, case.answer(ANSWER, args.drafts), recorder)
            if bench.profile is not None:
                print("\n".join(bench.profile.lines()), flush=True)
                found["profile"] = bench.profile.as_json()
            line = json.dumps(found)
            print(line, flush=True)
            if args.out:
                with args.out.open("a", encoding="utf-8") as out:
                    out.write(line + "\n")


if __name__ == "__main__":
    main()
