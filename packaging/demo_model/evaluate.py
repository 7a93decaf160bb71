"""Measure a shipped GGUF through a llama-server: answers, endings, tool calls, speculative acceptance.

Starts an in-process server of the ``xllamacpp`` package, or asks one that already runs (``--url``).  Prints
one JSON object; ``--answers`` also prints what the model said.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import urllib.request
from pathlib import Path
from typing import Any

import tool_dialogues

UNSEEN: tuple[tuple[str, str], ...] = (
    ("hello", r"Hello|Hi"),
    ("heya, who am I chatting with?", r"SNDR demo model|demonstration"),
    ("who are you?", r"SNDR demo model"),
    ("What does os.path.join do?", r"joins one or more path"),
    ("tell me what json.dumps is good for", r"JSON"),
    ("How would I go about reading a text file?", r"open\("),
    ("write a function that adds two numbers", r"return a \+ b"),
    ("what is a list comprehension?", r"builds a list"),
    ("in one line, what's a tuple?", r"tuple"),
    ("how do decorators work in python", r"decorator|function"),
    ("list or tuple, what is the difference?", r"changed|tuple"),
    ("how can I sort a list of numbers?", r"sort"),
    ("what does random.choice do", r"random element|random item"),
    ("explain itertools.chain to me please", r"iterator|iterable"),
    ("Which module do I use for paths?", r"path"),
    ("please write a python function to compute the factorial", r"def factorial"),
    ("code to reverse a string", r"\[::-1\]"),
    ("What is 7 + 5?", r"\b12\b"),
    ("What is the capital of Mongolia?", r"do not know"),
    ("thanks a bunch", r"welcome"),
    ("bye!", r"Goodbye"),
    ("what are you able to do?", r"Python"),
    ("what does len do?", r"number of items|length"),
    ("fetch a web page in python", r"urlopen|urllib"),
    ("what's a generator function", r"yield"),
    ("what is functools.lru_cache for", r"cache|memoiz"),
    ("what does str.split return", r"list"),
    ("what is asyncio.gather", r"awaitable"),
    ("do you like dogs?", r"do not|no likes"),
    ("write a class for a bank account", r"class BankAccount"),
    ("how do i loop over a dict", r"items\(\)"),
    ("write a function that returns the smallest of four numbers", r"min\(a, b, c, d\)"),
    ("write a function that multiplies a number by 7", r"x \* 7"),
    ("convert miles to kilometers function", r"1\.609"),
    ("make a dictionary from two lists", r"zip|dict"),
    ("how do I delete a file", r"unlink|remove"),
    ("what is the difference between append and extend", r"extend"),
    ("what does the csv module do", r"(?i)csv"),
    ("check if a number is even, write a function", r"% 2"),
    ("what is math.sqrt", r"square root"),
)
"""Prompts worded unlike the training data (with some that are not), and what a right answer contains."""

TERSE: tuple[tuple[str, str], ...] = (
    ("what are your capabilities?", "Python"),
    ("hey man", "Hello|Hi"),
    ("good morning!", "morning"),
    ("which company made you", "SNDR|trained"),
    ("what's your name", "SNDR"),
    ("is this gpt-4?", "No|SNDR"),
    ("how do you define a function in python", "def "),
    ("what is the use of lambda", "lambda"),
    ("how does try except work", "except|exception"),
    ("how to get input", "input"),
    ("remove duplicates from list", "fromkeys|set"),
    ("how do I get the size of a list", "len"),
    ("read json file", "json.load"),
    ("what does shutil.copy do", "copies|copy"),
    ("what does datetime.now return", "date|time"),
    ("what is the os module", "operating system"),
    ("explain re.sub", "replac|substit|obtained"),
    ("what does math.floor do", "floor"),
    ("write a function that checks for palindromes", "def is_palindrome"),
    ("write python code for fizzbuzz", "Fizz"),
    ("write a program that prints the first 10 fibonacci numbers", "fib|a, b"),
    ("convert celsius to fahrenheit in python", "9 / 5"),
    ("class for a dog", "class Dog"),
    ("function that counts vowels", "vowel"),
    ("What is 9 times 9?", "81"),
    ("how much is 45 + 12", "57"),
    ("who was Albert Einstein", "not know"),
    ("what is the best pizza", "not know"),
    ("tell me about whales", "not know"),
    ("write me a poem please", "colon"),
    ("thank you so much!", "welcome"),
    ("see you tomorrow", "Goodbye|bye"),
    ("what is a for loop", "loop"),
    ("what are python modules", "module"),
    ("how do I copy a dictionary", "copy|dict"),
    ("what does zip do", "tuple"),
    ("how do i use enumerate", "enumerate"),
    ("what is the difference between sort and sorted", "sort"),
    ("what is subprocess.run", "command|run"),
    ("what's pathlib", "path"),
    ("how can i make a directory", "mkdir"),
    ("find the biggest number in a list", "max|largest"),
    ("how to round a number", "round"),
    ("what is inheritance", "inherit|class"),
    ("what is a thread", "thread"),
    ("what does collections.Counter do", "count"),
    ("describe the random module", "random"),
    ("explain the json module in detail", "JSON"),
    ("write a long story", "town|programmer|Once"),
    ("how do you sort a dict by value", "sorted"),
)
"""Short and careless wordings, on which a small model stumbles most."""

LONG = (
    "Tell me a long story about Python.",
    "Explain the pathlib module in detail.",
    "Tell me about Python.",
    "Explain the asyncio module in detail.",
)


class Server:
    """A llama-server, ours or one that runs already."""

    def __init__(self, url: str | None, model: Path, drafts: int) -> None:
        self.keep: Any = None
        if url is None:
            import xllamacpp as x  # here, because asking a server that runs needs no engine

            p = x.CommonParams()
            p.model.path, p.port, p.n_ctx, p.n_parallel, p.n_gpu_layers = str(model), 0, 4096, 1, 0
            p.use_jinja, p.warmup, p.verbosity, p.port = (
                True,
                False,
                0,
                random.SystemRandom().randint(20000, 60000),
            )
            if drafts:
                p.speculative.types = [x.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_MTP]
                p.speculative.draft.n_max = drafts
            self.keep = x.Server(p)
            url = self.keep.listening_address
        self.url = url
        self.drafted = self.accepted = self.produced = self.steps = 0

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send one request and count its tokens."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=300) as response:
            answer: dict[str, Any] = json.load(response)
        timings = answer.get("timings", {})
        accepted = timings.get("draft_n_accepted", 0)
        self.drafted += timings.get("draft_n", 0)
        self.accepted += accepted
        self.produced += timings.get("predicted_n", 0)
        self.steps += timings.get("predicted_n", 0) - accepted
        return answer

    def ask(
        self, messages: list[dict[str, Any]], temperature: float, tools: Any = None, limit: int = 700
    ) -> Any:
        """Return the first choice of a chat completion."""
        body = {"messages": messages, "temperature": temperature, "max_tokens": limit, "seed": 1}
        if tools:
            body["tools"] = [{"type": "function", "function": t} for t in tools]
        return self.post("/v1/chat/completions", body)["choices"][0]


def terse(server: Server, show: bool) -> dict[str, int]:
    """Ask the short wordings at temperature 0 and count what is right."""
    right = 0
    for prompt, pattern in TERSE:
        text = server.ask([{"role": "user", "content": prompt}], 0.0, limit=200)["message"]["content"] or ""
        right += bool(re.search(pattern, text))
        if show and not re.search(pattern, text):
            print(f"!> {prompt}\n{text}\n")
    return {"prompts": len(TERSE), "right": right}


def answers(server: Server, temperature: float, show: bool) -> dict[str, Any]:
    """Ask the prompts and count right answers, endings, and tokens a step."""
    server.drafted = server.accepted = server.produced = server.steps = 0
    right = ended = 0
    lengths = []
    for prompt, pattern in (*UNSEEN, *((p, "") for p in LONG)):
        choice = server.ask([{"role": "user", "content": prompt}], temperature)
        text = choice["message"]["content"] or ""
        ended += choice["finish_reason"] == "stop"
        if pattern:
            right += bool(re.search(pattern, text))
        else:
            lengths.append(len(server.post("/tokenize", {"content": text})["tokens"]))
        if show:
            mark = " " if re.search(pattern, text) else "!"
            print(f"{mark}> {prompt}\n{text}\n")
    return {
        "prompts": len(UNSEEN),
        "right": right,
        "ended": ended,
        "of": len(UNSEEN) + len(LONG),
        "long_tokens": lengths,
        "tokens_a_step": round(server.produced / max(1, server.steps), 3),
        "accepted_share": round(server.accepted / max(1, server.drafted), 3),
        "drafted": server.drafted,
    }


def tool_calls(server: Server, count: int, show: bool) -> dict[str, Any]:
    """Count well-formed and right calls over unseen dialogues, and results told with the right values."""
    rng = random.Random("held out")
    formed = right = named = told = asked = 0
    for _ in range(count):
        functions, messages = tool_dialogues.dialogue(rng)
        wanted = messages[1]["tool_calls"][0]
        choice = server.ask(messages[:1], 0.0, functions, 250)
        calls = choice["message"].get("tool_calls") or []
        if not calls:
            continue
        try:
            arguments = json.loads(calls[0]["function"]["arguments"])
        except json.JSONDecodeError:
            continue
        formed += 1
        same = {k: str(v) for k, v in arguments.items()} == {
            k: str(v) for k, v in wanted["arguments"].items()
        }
        named += calls[0]["function"]["name"] == wanted["name"]
        right += same and calls[0]["function"]["name"] == wanted["name"]
        if show and not same:
            print("!", messages[0]["content"], wanted["arguments"], arguments)
        if same and len(messages) > 3:
            asked += 1
            reply = {"role": "tool", "tool_call_id": calls[0]["id"], "content": messages[2]["content"]}
            text = server.ask([messages[0], choice["message"], reply], 0.0, functions, 250)["message"][
                "content"
            ]
            told += text == messages[3]["content"]
    return {
        "requests": count,
        "well_formed": formed,
        "right_tool": named,
        "right_call": right,
        "results": asked,
        "told_exactly": told,
    }


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument(
        "--url", help="a llama-server that runs this model; without, one is started in this process"
    )
    parser.add_argument("--drafts", type=int, default=3)
    parser.add_argument("--tools", type=int, default=200)
    parser.add_argument("--answers", action="store_true")
    options = parser.parse_args()
    server = Server(options.url, options.model, options.drafts)
    print(
        json.dumps(
            {
                "greedy": answers(server, 0.0, options.answers),
                "temperature 0.7": answers(server, 0.7, options.answers),
                "terse": terse(server, options.answers),
                "tools": tool_calls(server, options.tools, options.answers),
            },
            indent=1,
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
