"""The demonstration model's data: documents have the template's form, and their answers are right."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
import pytest

MODEL = Path(__file__).parents[3] / "resources" / "models" / "sndr-demo"

Script = Callable[[str], ModuleType]


def templated(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> str:
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    # The engine's tojson leaves < and > alone; Jinja's own escapes them for HTML.
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    source = (MODEL / "chat_template.jinja").read_text(encoding="utf-8")
    return str(environment.from_string(source).render(messages=messages, tools=tools))


@pytest.mark.parametrize("seed", range(25))
def test_a_tool_dialogue_is_written_as_the_template_writes_it(script: Script, seed: int) -> None:
    conversation, dialogues = script("conversation"), script("tool_dialogues")
    tools, messages = dialogues.dialogue(random.Random(seed))
    pieces = conversation.render(messages, tools, "Be brief." if seed % 2 else "")
    system = [{"role": "system", "content": "Be brief."}] if seed % 2 else []
    assert "".join(text for text, _ in pieces) == templated([*system, *messages], tools)


def test_text_in_parts_and_a_developer_read_like_plain_text() -> None:
    parts = [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}]
    question = {"role": "user", "content": "hi"}
    plain = templated([{"role": "system", "content": "Be brief."}, question], None)
    assert plain == "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
    for role in ("system", "developer"):
        assert templated([{"role": role, "content": parts}, question], None) == plain
        late = templated([question, {"role": role, "content": parts}, question], None)
        assert "<|im_start|>system\nBe brief.<|im_end|>" in late


def test_only_answers_are_learned_in_full(script: Script) -> None:
    pieces = script("conversation").chat([("hello", "Hi!"), ("bye", "Goodbye!")], "Be brief.")
    assert [text for text, weight in pieces if weight == 2] == ["Hi!<|im_end|>", "Goodbye!<|im_end|>"]


@pytest.mark.parametrize("seed", range(60))
def test_the_code_of_a_task_runs(script: Script, seed: int) -> None:
    phrase, answer = script("code_tasks").task(random.Random(seed))
    code = answer.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(code, names)
    said = re.search(r"`(\w+\(.*\))` returns (.+)\.$", answer)
    if said:
        assert eval(said.group(1), names) == eval(said.group(2)), phrase


def test_our_own_code_answers_compile(script: Script) -> None:
    phrasing = script("phrasing")
    answers = list(phrasing.read_answers(Path(str(phrasing.__file__)).with_name("answers.md")))
    assert len(answers) > 150
    for _, topics, answer in answers:
        assert all(topics), answer
        assert answer
        for code in re.findall(r"```python\n(.*?)```", answer, re.DOTALL):
            compile(code, topics[0], "exec")


def test_a_gap_splits_the_text_without_loss(script: Script) -> None:
    source = script("source_code")
    text = "def add(a, b):\n    total = a + b\n    return total\n\n\nprint(add(1, 2))\n"
    for seed in range(50):
        before, middle, after = source.gap(text, random.Random(seed))
        assert middle
        # Whole lines taken to the end of the file may bring one line break more than there was.
        assert text.rstrip().startswith((before + middle).rstrip())
        assert after == "" or (before + middle + after).rstrip() == text.rstrip()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Return :func:`len` of *seq*.", "Return `len()` of `seq`."),
        ("See :mod:`os.path` and ``x = 1``.", "See `os.path` and `x = 1`."),
        ("It is *not* done.", "It is not done."),
        (r"All of *\*paths*.", "All of `*paths`."),
    ],
)
def test_inline_markup_becomes_markdown(script: Script, written: str, read: str) -> None:
    assert script("rst").inline(written) == read


def test_a_function_is_described_in_a_sentence(script: Script, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "toy.rst.txt").write_text(
        "Toy\n===\n\n.. module:: toy\n   :synopsis: A toy.\n\nIntroduction.\n\n"
        ".. function:: play(game, *, rounds=1)\n\n   Play the *game* and return its result.\n",
        encoding="utf-8",
    )
    docs = script("library_docs")
    entries, modules = docs.read_library(tmp_path)
    assert modules[0].synopsis == "A toy."
    assert docs.describe(entries[0]) == (
        "`toy.play(game, *, rounds=1)` plays the `game` and return its result."
    )
