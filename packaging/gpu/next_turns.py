"""Next turns of long conversations, asked through the endpoint, of a shape with random weights."""

import json
import random
import re
import shutil
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import judge
from host_under_test import HostUnderTest
from judge import Row

from engine_host.protocol.engines import Engine

ROOT = Path(__file__).resolve().parents[2]
SHAPES = ROOT / "tests" / "unit" / "fit" / "shapes"
DEMO = ROOT / "resources" / "models" / "sndr-demo"
LENGTHS = (8192, 32768, 131072)
# Turns after the first, their new tokens, and those of an answer.
TURNS, NEW, ANSWER = 8, 500, 24
CONTEXT = LENGTHS[-1] + (NEW + ANSWER + 100) * (TURNS + 1) + 1024
_WORDS = ("file", "value", "index", "result", "error", "cache", "queue", "table", "window", "total", "reader")
_WARM_UP = 2048


def shape_of(name: str, folder: Path) -> Path:
    """Make a model's folder of a shape: its config.json, and the bundled model's tokenizer and vocabulary."""
    folder.mkdir(parents=True)
    config = json.loads((SHAPES / f"{name}.json").read_text(encoding="utf-8"))
    config["vocab_size"] = json.loads((DEMO / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(DEMO / file, folder)
    return folder


def short_conversation(host: HostUnderTest, question: str) -> list[dict[str, Any]]:
    """Hold one of eight turns with the bundled model; return what each says of its tokens."""
    body: dict[str, Any] = {"model": "sndr-demo", "temperature": 0, "max_tokens": 64, "ignore_eos": True}
    messages: list[dict[str, str]] = []
    usages: list[dict[str, Any]] = []
    for number in range(8):
        lines = "\n".join(f"value_{number}_{line} = {line * 37 % 101}" for line in range(24))
        messages.append({"role": "user", "content": f"{question}, given these:\n{lines}"})
        answer = host.ask("chat/completions", {**body, "messages": messages})
        messages.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
        usages.append(answer["usage"])
    return usages


class Talk:
    """Conversations with one engine, over `/v1/chat/completions`."""

    def __init__(self, host: HostUnderTest, engine: Engine) -> None:
        self._host, self._engine = host, engine
        self._draw = random.Random(0)
        self._tokens_a_word = self._prompt([{"role": "user", "content": self._text(4000)}]) / 4000

    def _text(self, words: int) -> str:
        return " ".join(f"{self._draw.choice(_WORDS)}{self._draw.randrange(100)}" for _ in range(words))

    def _prompt(self, messages: list[dict[str, str]]) -> int:
        """The tokens of a prompt, by the engine itself."""
        with self._host.engine_itself(self._engine) as http:
            answer = http.post("/tokenize", json={"model": self._engine.name, "messages": messages})
        answer.raise_for_status()
        return int(answer.json()["count"])

    def counters(self) -> dict[str, float]:
        """The engine's own counters."""
        with self._host.engine_itself(self._engine) as http:
            return judge.counters(http.get("/metrics").text)

    def block(self) -> int:
        """Tokens of one block of the cache."""
        with self._host.engine_itself(self._engine) as http:
            found = re.search(r'cache_config_info\{[^}]*\bblock_size="(\d+)"', http.get("/metrics").text)
        return int(found[1]) if found else 0

    def ask(self, messages: list[dict[str, str]]) -> tuple[float, str]:
        """Ask through the endpoint; return seconds to the first piece of the answer, and the answer."""
        body = {
            "model": self._engine.name,
            "messages": messages,
            "temperature": 0,
            "max_tokens": ANSWER,
            "ignore_eos": True,
            "stream": True,
        }
        first, said = 0.0, ""
        began = time.perf_counter()
        with (
            httpx.Client(timeout=300.0, trust_env=False) as http,
            http.stream("POST", f"{self._host.url}/chat/completions", json=body) as answer,
        ):
            answer.raise_for_status()
            for line in answer.iter_lines():
                if not line.startswith("data:") or line.endswith("[DONE]"):
                    continue
                for choice in json.loads(line[5:])["choices"]:
                    delta = choice["delta"]
                    text = delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning")
                    if text:
                        first = first or time.perf_counter() - began
                        said += text
        return first or time.perf_counter() - began, said

    def conversation(self, length: int, turns: int) -> dict[str, Any]:
        """Hold one of so many tokens and then so many turns; what they took, and found in the cache."""
        messages = [{"role": "user", "content": self._text(int(length / self._tokens_a_word))}]
        prompt = self._prompt(messages)
        first, said = self.ask(messages)
        seconds: list[float] = []
        inside: list[float] = []
        shared = whole = 0
        block, start = self.block(), self.counters()
        began = start
        for _ in range(turns):
            new = self._text(int(NEW / self._tokens_a_word))
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": new}]
            # The answer itself is not counted: random weights write text that is read as other tokens.
            shared += prompt
            whole += prompt // block * block if block else 0
            prompt = self._prompt(messages)
            took, said = self.ask(messages)
            seconds.append(took)
            now = self.counters()
            name = "vllm:time_to_first_token_seconds_sum"
            inside.append(now.get(name, 0.0) - began.get(name, 0.0))
            began = now
        hits = began.get("vllm:prefix_cache_hits_total", 0.0) - start.get("vllm:prefix_cache_hits_total", 0.0)
        return {
            "length": length,
            "block": block,
            "first_turn_s": round(first, 3),
            "next_turn_s": round(statistics.median(seconds), 3),
            "least_s": round(min(seconds), 3),
            "most_s": round(max(seconds), 3),
            "mean_s": round(statistics.mean(seconds), 3),
            "in_engine_s": round(statistics.median(inside), 3),
            "hits": int(hits),
            "shared": shared,
            "shared_whole_blocks": whole,
        }


def measure(
    part: str, host: HostUnderTest, engine: Engine, results: list[dict[str, Any]], *, asked: bool
) -> Iterable[Row]:
    """Each length: a row of times and hits; then how far they grow from the shortest to the longest.

    `asked`: whether hits and times are wanted here, or only told.
    """
    talk = Talk(host, engine)
    talk.conversation(_WARM_UP, 3)
    for length in LENGTHS:
        found = talk.conversation(length, TURNS)
        results.append(found)
        share = found["hits"] / found["shared_whole_blocks"] if found["shared_whole_blocks"] else 0.0
        times = f"first turn {found['first_turn_s']} s, next {found['next_turn_s']} s"
        times += f" ({found['least_s']} to {found['most_s']}, in the engine {found['in_engine_s']})"
        told = f"{found['hits']:,} of {found['shared']:,} tokens shared, blocks of {found['block']}"
        yield Row(part, f"next turns at {length:,}", share >= 0.95 if asked else None, f"{times}; {told}")
    shortest, longest = results[-len(LENGTHS)]["next_turn_s"], results[-1]["next_turn_s"]
    flat = longest <= 1.3 * shortest if asked else None
    yield Row(part, "the time does not grow", flat, f"{longest / shortest:.2f} ×")
