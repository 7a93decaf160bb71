"""Each sentence of a check is in the table once, is used, and gets the values that it names."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from engine_host.core.findings.presets import PRESETS
from engine_host.core.findings.starts import STARTS
from engine_host.core.findings.table import TEXTS, finding
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason

ROOT = Path(__file__).resolve().parents[4] / "engine_host"
TABLE = ROOT / "core" / "findings"
OPTIONS = {"severity", "reason", "fix", "command", "settings", "evidence"}


@cache
def sources() -> dict[Path, str]:
    return {
        path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py") if TABLE not in path.parents
    }


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(sources()[path])


@cache
def calls(name: str) -> list[tuple[str, ast.Call]]:
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path, text in sources().items()
        if f"{name}(" in text  # To parse all of them takes each worker two seconds.
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def words(node: ast.AST) -> set[str]:
    return {
        one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


def keys(node: ast.expr) -> set[str]:
    if isinstance(node, ast.IfExp):
        return keys(node.body) | keys(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def test_every_row_is_used_and_every_finding_is_a_row() -> None:
    # A word that is not in a file as text is not in its tree: to parse all of them takes two seconds.
    any_key = re.compile("|".join(map(re.escape, TEXTS)))
    said = set().union(*(words(tree(path)) for path, text in sources().items() if any_key.search(text)))
    assert TEXTS.keys() - said == set()
    assert [where for where, _ in calls("Finding")] == []
    for where, call in calls("finding"):
        assert keys(call.args[0]) <= TEXTS.keys(), where


def test_every_sentence_gets_its_values() -> None:
    for where, call in calls("finding"):
        given = {one.arg for one in call.keywords if one.arg}
        if len(given) < len(call.keywords):
            continue  # Passed on with two asterisks.
        for key in keys(call.args[0]):
            row = TEXTS[key]
            parts = [row.message]
            parts += [] if "fix" in given and "fix=None" in ast.unparse(call) else [row.fix]
            parts += [] if "command" in given else [row.command or ""]
            named = set(re.findall(r"{(\w+)[:}]", " ".join(parts)))
            assert named <= given - OPTIONS, where


@pytest.mark.parametrize("key", sorted({*STARTS, *PRESETS} - {"setting_without_effect"}))
def test_a_finding_says_what_to_do_and_an_error_says_why_for_code_too(key: str) -> None:
    row = TEXTS[key]
    for where, call in calls("finding"):
        if key in keys(call.args[0]):
            given = {one.arg for one in call.keywords}
            assert row.fix or "fix" in given, where
            assert row.reason or row.severity is not Severity.ERROR or "reason" in given, where
            grave = "Severity.ERROR" in ast.unparse(call)
            assert row.reason or not grave or "reason" in given, where


@pytest.mark.parametrize("key", TEXTS)
def test_a_row_says_what_to_do_in_whole_sentences(key: str) -> None:
    row = TEXTS[key]
    assert row.message[-1] in ".}]"
    assert row.command is None or row.fix


def test_values_fill_the_sentences_and_travel_as_evidence() -> None:
    made = finding(
        "memory_short/llama.cpp",
        severity=Severity.ERROR,
        evidence={"total": 2**34},
        parts="The weights alone",
        needed=3 * 2**30,
        free=2**30,
        most=None,
        longest=4096,
    )
    assert made.id == "memory_short"
    assert made.severity is Severity.ERROR
    assert made.reason is Reason.OUT_OF_MEMORY
    assert made.message == "The weights alone want about 3.0 GiB (estimated); 1.0 GiB are free."
    assert made.fix is not None
    assert made.fix.text.endswith("or a smaller model. A context of 4,096 tokens fits.")
    assert made.evidence["needed"] == 3 * 2**30
    assert made.evidence["total"] == 2**34


def test_a_fix_with_a_click_gets_its_words_from_the_row() -> None:
    made = finding("prebuilt_server", fix=Fix(text="", command="sndr engine build llama.cpp"))
    assert made.fix is not None
    assert made.fix.text == "Build llama.cpp for this processor once."
    assert made.fix.command == "sndr engine build llama.cpp"
    assert finding("weights.damaged", fix=Fix(text="Fetch it."), path="a", problem="Cut.").fix == Fix(
        text="Fetch it."
    )
