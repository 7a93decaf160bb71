"""Hold conversations of several turns with a hybrid that drafts, and see what prefix caching changes in them.

usage: python -m engine_host.bench.gpu.prefix_conversations ask MODEL OUT.json [--conversations 200]
                  [--without | --reuse] [--drafts 3] [--blocks 60] [--streams 8] [--max-length 4096] [--eager]
                  [--kv turboquant_k8v4] [--cache-gib 2] [--longer 1] [--gdn-prefill triton]
       python -m engine_host.bench.gpu.prefix_conversations compare WITHOUT.json WITH.json

Each next turn is all before it, the answer and new text. Of six conversations one each is plain, has tool
calls, edits an early turn, is cancelled in an answer, branches into three at once, and shares its beginning
with others of its kind. `--reuse` keeps the state of every block (`prefix_cache_retention_interval` none) and
takes a hit's last block too (`disable_eagle_block_drop`), which vLLM 0.32 can and does not do by itself.
`--blocks` makes the cache so small that it has to evict, `--longer` makes texts at the beginning so many
times as long (a quantised cache has larger blocks), `--cache-gib` lets several engines share a GPU. It needs
vLLM; patches and VLLM_BATCH_INVARIANT are chosen from outside.
"""

import argparse
import importlib
import json
import random
import sys
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

KINDS = ("plain", "tools", "edit", "cancel", "branches", "shared")
ANSWER = 32
CANCELLED_AT = 17
END, USER, ASSISTANT = "<|im_end|>\n", "<|im_start|>user\n", "<|im_start|>assistant\n"
TOPICS = ("a list", "a dictionary", "a generator", "recursion", "a decorator", "an exception", "a set")
ASKED = (
    "What is {0}?",
    "Write a function that uses {0} and {1}.",
    "Explain the difference between {0} and {1} with an example.",
    "Thanks. And how do I test that, when {1} is involved?",
)
WORDS = ("file", "value", "index", "result", "error", "cache", "queue", "table", "window", "total", "reader")


@dataclass(frozen=True)
class Turn:
    """One request of a conversation; `cancelled` ends it after so many tokens."""

    prompt: tuple[int, ...]
    cancelled: int | None = None


@dataclass
class Answer:
    """The answer to a turn; `best` are the log-probabilities of the chosen tokens."""

    tokens: list[int] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    cached: int = 0


Conversation = Generator[list[Turn], list[Answer], None]


class Writer:
    """The texts of one conversation as tokens, from a seed."""

    def __init__(self, tokenizer: Any, seed: int, longer: int = 1) -> None:
        self._tokenizer, self._longer, self.draw = tokenizer, longer, random.Random(seed)

    def tokens(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def beginning(self, sentences: int, seed: int | None = None) -> tuple[int, ...]:
        """The system's text, of so many made-up sentences."""
        draw = random.Random(seed) if seed is not None else self.draw
        lines = [f"Rule {n}: {' '.join(draw.choices(WORDS, k=9))}." for n in range(sentences * self._longer)]
        text = "\n".join(["<|im_start|>system", "You are a helpful assistant.", *lines])
        return self.tokens(text + END)

    def question(self) -> tuple[int, ...]:
        text = self.draw.choice(ASKED).format(*self.draw.sample(TOPICS, 2))
        return self.tokens(END + USER + text + END + ASSISTANT)

    def result(self) -> tuple[int, ...]:
        """A call of a tool, and the table that it gave back as JSON."""
        count = self.draw.randrange(4, 20)
        rows = [{"id": n, self.draw.choice(WORDS): self.draw.randrange(10**6)} for n in range(count)]
        call = '<tool_call>\n{"name": "read_table", "arguments": {"limit": 20}}\n</tool_call>' + END
        text = f"{call}{USER}<tool_response>\n{json.dumps(rows)}\n</tool_response>"
        return self.tokens(text + END + ASSISTANT)


def conversation(kind: str, write: Writer) -> Conversation:
    """The turns of one conversation; what each answered is sent back in."""
    turns = write.draw.randrange(4, 7)
    sentences = write.draw.randrange(4, 40)
    so_far = write.beginning(40, seed=5) if kind == "shared" else write.beginning(sentences)
    early, told = so_far, 0
    while told < turns:
        told += 1
        new = write.result() if kind == "tools" and told % 2 == 0 else write.question()
        if kind == "edit" and told == turns - 1:
            so_far = early
        if kind == "branches" and told == 3:
            branches = [so_far + new, *(so_far + write.question() for _ in range(2))]
            answers = yield [Turn(branch) for branch in branches]
            chosen = write.draw.randrange(3)
            so_far = branches[chosen] + tuple(answers[chosen].tokens)
            continue
        cancelled = CANCELLED_AT if kind == "cancel" and told % 2 == 0 else None
        [answer] = yield [Turn(so_far + new, cancelled)]
        so_far += new + tuple(answer.tokens)
        if told == 2:
            early = so_far


class Engine:
    """A vLLM engine that many conversations talk to, a step at a time."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._vllm = importlib.import_module("vllm")
        arguments: dict[str, Any] = {"dtype": args.dtype} if args.dtype else {}
        if args.drafts:
            arguments["speculative_config"] = {"method": "mtp", "num_speculative_tokens": args.drafts}
        if args.blocks:
            arguments["num_gpu_blocks_override"] = args.blocks
        if args.kv:
            arguments["kv_cache_dtype"] = args.kv
        if args.gdn_prefill:
            arguments["gdn_prefill_backend"] = args.gdn_prefill
        if args.cache_gib:
            # Nothing is measured then, so that engines can start side by side.
            arguments |= {
                "kv_cache_memory_bytes": int(args.cache_gib * 2**30),
                "gpu_memory_utilization": 0.05,
            }
        if args.without:
            arguments["enable_prefix_caching"] = False
        if args.reuse:
            arguments |= {"enable_prefix_caching": True, "prefix_cache_retention_interval": None}
            if args.drafts:
                arguments["speculative_config"]["disable_eagle_block_drop"] = True
        self._llm = self._vllm.LLM(
            model=str(args.model),
            max_model_len=args.max_length,
            max_num_seqs=args.streams,
            max_num_batched_tokens=args.chunk,
            enforce_eager=args.eager,
            disable_log_stats=False,
            **arguments,
        )
        self.tokenizer = self._llm.get_tokenizer()
        self.configuration = self._llm.llm_engine.vllm_config

    def counters(self) -> dict[str, float]:
        """vLLM's own counters of the prefix cache and of drafts."""
        wanted = ("prefix_cache_queries", "prefix_cache_hits", "spec_decode_num_drafts",
                  "spec_decode_num_accepted_tokens", "num_preemptions")  # fmt: skip
        return {
            metric.name.removeprefix("vllm:"): metric.value
            for metric in self._llm.get_metrics()
            if metric.name.removeprefix("vllm:") in wanted
        }

    def hold(self, conversations: Sequence[Conversation], at_once: int) -> list[list[list[Answer]]]:
        """Hold them all, so many at once; answers by conversation, round and branch."""
        engine, waiting = self._llm.llm_engine, list(enumerate(conversations))
        rounds: list[list[list[Answer]]] = [[] for _ in conversations]
        active: dict[int, tuple[Conversation, list[Turn], dict[int, Answer]]] = {}

        params = self._vllm.SamplingParams(max_tokens=ANSWER, temperature=0, logprobs=0, ignore_eos=True)

        def ask(number: int, talk: Conversation, turns: list[Turn]) -> None:
            active[number] = (talk, turns, {})
            for branch, turn in enumerate(turns):
                name = f"{number}-{len(rounds[number])}-{branch}"
                engine.add_request(name, {"prompt_token_ids": list(turn.prompt)}, params)

        while waiting or active:
            while waiting and len(active) < at_once:
                number, talk = waiting.pop(0)
                ask(number, talk, next(talk))
            for output in engine.step():
                number, _, branch = (int(part) for part in output.request_id.split("-"))
                talk, turns, answers = active[number]
                said, cancelled = output.outputs[0], turns[branch].cancelled
                enough = cancelled is not None and len(said.token_ids) >= cancelled
                if branch in answers or not (output.finished or enough):
                    continue
                if not output.finished:
                    engine.abort_request([output.request_id])
                tokens = list(said.token_ids)[:cancelled]
                best = [place[token].logprob for token, place in zip(tokens, said.logprobs, strict=False)]
                answers[branch] = Answer(tokens, best, output.num_cached_tokens or 0)
                if len(answers) < len(turns):
                    continue
                got = [answers[place] for place in range(len(turns))]
                rounds[number].append(got)
                try:
                    ask(number, talk, talk.send(got))
                except StopIteration:
                    del active[number]
        return rounds


def ask(args: argparse.Namespace) -> dict[str, Any]:
    """Hold the conversations with one engine and write down what it answered."""
    engine = Engine(args)
    kept: list[list[list[Turn]]] = []

    def recorded(number: int) -> Conversation:
        turns: list[list[Turn]] = []
        kept.append(turns)
        talk = conversation(KINDS[number % len(KINDS)], Writer(engine.tokenizer, number, args.longer))
        asked = next(talk)
        while True:
            turns.append(asked)
            got = yield asked
            try:
                asked = talk.send(got)
            except StopIteration:
                return

    talks = [recorded(number) for number in range(args.conversations)]
    rounds = engine.hold(talks, args.at_once)
    cache = engine.configuration.cache_config
    return {
        "caching": cache.enable_prefix_caching,
        "block": cache.block_size,
        "kv": str(cache.cache_dtype),
        "blocks": cache.num_gpu_blocks,
        "counters": engine.counters(),
        "conversations": [
            {"kind": KINDS[number % len(KINDS)], "answers": _told(kept[number], got)}
            for number, got in enumerate(rounds)
        ],
    }


def _told(rounds: list[list[Turn]], answers: list[list[Answer]]) -> list[dict[str, Any]]:
    """The answers of a conversation; `shared` is how much of a prompt its earlier rounds had computed."""
    told: list[dict[str, Any]] = []
    known: list[tuple[int, ...]] = []
    for turns, got in zip(rounds, answers, strict=True):
        for turn, answer in zip(turns, got, strict=True):
            shared = max((_common(turn.prompt, earlier) for earlier in known), default=0)
            told.append({"prompt": len(turn.prompt), "shared": shared, **asdict(answer)})
        # The last token of an answer is never read by the model.
        known += [turn.prompt + tuple(answer.tokens[:-1]) for turn, answer in zip(turns, got, strict=True)]
    return told


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def compare(without: dict[str, Any], cached: dict[str, Any]) -> dict[str, Any]:
    """Return how many conversations are the same, and what of their prompts came from the cache.

    `apart` is the largest difference of a chosen token's log-probability up to the first token that differs;
    `reachable_tokens` what whole blocks of earlier turns would have given, or what came from the cache.
    `after_hit` and `without_hit`: up to the first answer of a conversation that differs, how many answers
    were compared and differ, and how far the log-probabilities of their chosen tokens are apart.
    """
    same: dict[str, list[int]] = {kind: [0, 0] for kind in KINDS}
    moved: dict[bool, list[float]] = {True: [], False: []}
    compared: dict[bool, list[int]] = {True: [0, 0], False: [0, 0]}
    for one, other in zip(without["conversations"], cached["conversations"], strict=True):
        equal = True
        for left, right in zip(one["answers"], other["answers"], strict=False):
            equal, hit = left["tokens"] == right["tokens"], right["cached"] > 0
            compared[hit][0] += 1
            compared[hit][1] += not equal
            for token, mine, best, theirs in zip(
                left["tokens"], right["tokens"], left["best"], right["best"], strict=False
            ):
                moved[hit].append(abs(best - theirs))
                if token != mine:
                    break
            if not equal:
                break
        same[one["kind"]][0] += equal
        same[one["kind"]][1] += 1
    answers = [answer for talk in cached["conversations"] for answer in talk["answers"]]
    block = cached["block"]
    reachable = [max(answer["cached"], answer["shared"] // block * block) for answer in answers]
    drafts = cached["counters"].get("spec_decode_num_drafts", 0)
    return {
        "caching": cached["caching"],
        "block": block,
        "same": sum(kind[0] for kind in same.values()),
        "conversations": sum(kind[1] for kind in same.values()),
        "by_kind": same,
        "apart": round(max(*moved[True], *moved[False], 0.0, 0.0), 6),
        "after_hit": _spread(compared[True], moved[True]),
        "without_hit": _spread(compared[False], moved[False]),
        "answers": len(answers),
        "answers_with_hits": sum(answer["cached"] > 0 for answer in answers),
        "prompt_tokens": sum(answer["prompt"] for answer in answers),
        "cached_tokens": sum(answer["cached"] for answer in answers),
        "reachable_tokens": sum(reachable),
        "acceptance_length": round(1 + cached["counters"]["spec_decode_num_accepted_tokens"] / drafts, 3)
        if drafts
        else None,
        "counters": cached["counters"],
    }


def _spread(compared: list[int], moved: list[float]) -> dict[str, Any]:
    """Return the answers compared, those that differ, and median, 99 % and most of what moved."""
    places = (0.5, 0.99, 1.0)
    ordered = sorted(moved)
    told = [
        round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 6) for share in places if ordered
    ]
    return {"answers": compared[0], "differ": compared[1], "moved": told}


def main() -> int:
    """Hold or compare conversations; 1 when some are not the same."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    asking = parts.add_parser("ask")
    asking.add_argument("model", type=Path)
    asking.add_argument("out", type=Path)
    asking.add_argument("--conversations", type=int, default=200)
    asking.add_argument("--at-once", type=int, default=4)
    caching = asking.add_mutually_exclusive_group()
    caching.add_argument("--without", action="store_true")
    caching.add_argument("--reuse", action="store_true")
    asking.add_argument("--eager", action="store_true")
    asking.add_argument("--drafts", type=int, default=3)
    asking.add_argument("--blocks", type=int)
    asking.add_argument("--streams", type=int, default=8)
    asking.add_argument("--chunk", type=int, default=2048)
    asking.add_argument("--max-length", type=int, default=4096)
    asking.add_argument("--dtype")
    asking.add_argument("--kv", help="the type of the KV cache")
    asking.add_argument(
        "--cache-gib", type=float, help="memory of the cache, of which nothing is measured then"
    )
    asking.add_argument("--longer", type=int, default=1)
    asking.add_argument("--gdn-prefill", help="triton where CUTLASS is not there")
    comparing = parts.add_parser("compare")
    comparing.add_argument("without", type=Path)
    comparing.add_argument("cached", type=Path)
    args = parser.parse_args()
    if args.part == "ask":
        args.out.write_text(json.dumps(ask(args)), encoding="utf-8")
        return 0
    found = compare(json.loads(args.without.read_text()), json.loads(args.cached.read_text()))
    print(json.dumps(found))
    return 0 if found["same"] == found["conversations"] else 1


if __name__ == "__main__":
    sys.exit(main())
