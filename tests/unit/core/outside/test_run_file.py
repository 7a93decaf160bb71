"""A run in a file of somebody else: its words are words, and what is no run says where it is none."""

from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.outside.run_file import run_of_file
from engine_host.protocol.bench.lab import LabMachine
from engine_host.protocol.errors import Reason
from tests.unit.cli.bench.test_lab import a_run

OWN = a_run(machine=LabMachine(program="0.1.0", python="3", system="s")).model_dump_json()
UNKNOWN = OWN.replace('"quick"', '"format-disk"', 1)


def written(path: Path, text: str) -> Path:
    """Write a file and return where it is."""
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_shown_of_it_has_no_line_of_its_own_and_turns_no_text_around(tmp_path: Path) -> None:
    engine = a_run().engine.model_copy(update={"settings": {"a\nb": "c\u202ed"}})
    run = a_run(ended_by="cut\nMind: nothing\x1b]0;x\x07", complete=False, engine=engine)
    found = run_of_file(written(tmp_path / "run.json", run.model_dump_json()))
    assert found.ended_by == "cut Mind: nothing ]0;x "
    long = run_of_file(written(tmp_path / "run.json", a_run(ended_by="x" * 9_000_000).model_dump_json()))
    assert len(long.ended_by) == 4097
    assert found.engine.settings == {"a b": "c d"}
    assert (found.parts, found.samples) == (run.parts, run.samples)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "Invalid JSON"),
        ("[]", "Input should be an object"),
        ("[" * 200_000, "Invalid JSON"),
        (UNKNOWN, "workload: Input should be "),
        ('{"sweep": {}, "runs": []}', "id: Field required"),
    ],
)
def test_what_is_no_run_says_where_it_is_none(tmp_path: Path, text: str, cause: str) -> None:
    with pytest.raises(HostError, match="cannot be read as a run") as caught:
        run_of_file(written(tmp_path / "run.json", text))
    assert caught.value.reason is Reason.BAD_REQUEST
    assert cause in caught.value.problem.cause
    assert caught.value.problem.fix is not None


def test_one_of_a_newer_version_is_said_to_be_so_where_it_cannot_be_read(tmp_path: Path) -> None:
    newer = UNKNOWN.replace('"program":"0.1.0"', '"program":" 99.1 "')
    with pytest.raises(HostError, match=r"was written by sndr 99\.1, which is newer than this one") as caught:
        run_of_file(written(tmp_path / "run.json", newer))
    assert "workload: Input should be" in caught.value.problem.cause
    assert caught.value.problem.fix is not None
    assert caught.value.problem.fix.text.startswith("Update this program")
    # One that can be read is, whoever wrote it: what is not known is left out.
    readable = a_run().model_dump_json().replace('"program":"1"', '"program":"99.1","later":{}')
    assert run_of_file(written(tmp_path / "run.json", readable)).machine.program == "99.1"


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="No such file"):
        run_of_file(tmp_path / "run.json")
