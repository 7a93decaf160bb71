"""Exit codes, problems and tables of the command line."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.cli.output import CODES, MEANINGS, Exit, Output, problem_lines, size
from engine_host.core.errors import HostError
from engine_host.core.sizes import duration
from engine_host.protocol.errors import Fix, Problem, Reason

ROOT = Path(__file__).resolve().parents[3]


def test_every_reason_has_an_exit_code() -> None:
    assert set(CODES) == set(Reason)


def test_every_exit_code_is_documented() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for code, meaning in MEANINGS.items():
        assert f"| {code.value} | {meaning} |" in readme
    assert set(MEANINGS) == set(Exit)


def test_problem_says_what_why_and_what_to_do() -> None:
    problem = Problem(
        reason=Reason.PORT_IN_USE,
        message="Taken.",
        cause="Another.\nOf its own.\n",
        fix=Fix(text="Use 8021.", command="sndr x"),
    )
    assert problem_lines(problem) == [
        "Error: Taken.",
        "  Why:        Another.\n              Of its own.",
        "  What to do: Use 8021.",
        "              $ sndr x",
    ]


def test_problem_with_json_is_json_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    code = Output(as_json=True).problem(HostError(Reason.DISK_FULL, "Full.").problem)
    assert code == Exit.SYSTEM
    assert json.loads(capsys.readouterr().out)["error"]["reason"] == "disk_full"


def test_notes_stay_out_of_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).note("going on")
    Output(as_json=True).note("going on")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "going on\n"


def headings() -> Iterator[tuple[str, list[str]]]:
    """The headings of every table of the command line, with the place where they stand."""
    for path in sorted((ROOT / "engine_host" / "cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "table":
                words = node.args[0]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "headings":
                words = node.value
            else:
                continue
            if isinstance(words, ast.Tuple):
                said = [ast.literal_eval(one) for one in words.elts if isinstance(one, ast.Constant)]
                yield f"{path.name}:{node.lineno}", said


def test_every_column_has_a_heading() -> None:
    found = dict(headings())
    assert len(found) >= 15
    assert not {place: said for place, said in found.items() if "" in said}


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "not measured"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (2**30 - 1, "1.0 GiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_size(count: int | None, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0.042, "42 ms"), (1.25, "1.2 s"), (61, "1 min 01 s"), (3720, "1 h 02 min")),
        # As they are shown: there are no 1000 ms and no 60.0 s.
        *((0.99951, "1.0 s"), (59.96, "1 min 00 s"), (3599.97, "1 h 00 min")),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_sentences_are_folded_between_words_and_documents_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    out, command = Output(as_json=False), "sndr presets show a-long-name-of-a-preset"
    out.result({}, ["  Nothing was measured with real weights.", f"$ {command}"])
    assert capsys.readouterr().out.splitlines() == [
        "  Nothing was measured",
        "  with real weights.",
        f"$ {command}",
    ]
    document = "key: a value that is long\nother: one that is long, too"
    out.result({}, document)
    out.result({}, "a line of a log that is long", verbatim=True)
    assert capsys.readouterr().out == f"{document}\na line of a log that is long\n"
    out.note("The folder is looked through.")
    assert capsys.readouterr().err == "The folder is looked\nthrough.\n"
    fix = Fix(text="Take the other one of them.", command=command)
    out.problem(Problem(reason=Reason.NOT_FOUND, message="There is no such preset here.", fix=fix))
    assert capsys.readouterr().err.splitlines() == [
        "Error: There is no such",
        "  preset here.",
        "  What to do: Take the",
        "              other one",
        "              of them.",
        f"              $ {command}",
    ]
