"""The reader of ledgers: lines that arrive in any pieces, files that are damaged, cut, replaced or gone."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine_host.overlay.ledger import LedgerChange, LedgerReader
from engine_host.overlay.summary import REASONS, summary
from engine_host.protocol.patches import PatchOutcome, PatchProbe, PatchReason, ProcessPatches, ProcessRole


def line(event: str, pid: int = 7, **fields: Any) -> bytes:
    """One line as a process writes it."""
    written = {"v": 1, "at": 1.5, "pid": pid, "ppid": 1, "role": "EngineCore", "rank": None, "event": event}
    return json.dumps(written | fields).encode() + b"\n"


def result(patch: str = "one", target: str = "vllm.a", outcome: str = "applied", **fields: Any) -> bytes:
    return line("result", patch=patch, op="rebind", target=target, outcome=outcome, ms=1.5, **fields)


def settled(patch: str = "one", outcome: str = "applied", **fields: Any) -> bytes:
    return line("settled", patch=patch, outcome=outcome, **fields)


# Where the path beside the ledger would be too long.
OWN_SOCKET = "/var/run/sndr-abc/probe.sock"
WHOLE = (
    line("start", bundle="d", overhead_ms=2.5)
    + result(detail="“ßé”")
    + settled()
    + line("probe", socket=OWN_SOCKET)
)


@pytest.fixture
def reader(tmp_path: Path) -> LedgerReader:
    return LedgerReader(tmp_path, ["one", "two"])


def append(folder: Path, content: bytes, name: str = "7.jsonl") -> None:
    with (folder / name).open("ab") as file:
        file.write(content)


def test_a_folder_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    reader = LedgerReader(tmp_path / "none", ["one"])
    assert reader.read() == ()
    assert reader.processes() == ()
    assert reader.sockets() == {}


def test_a_ledger_that_is_split_at_any_byte_reads_as_a_whole(tmp_path: Path) -> None:
    for place in range(len(WHOLE) + 1):
        folder = tmp_path / str(place)
        folder.mkdir()
        reader = LedgerReader(folder, ["one", "two"])
        append(folder, WHOLE[:place])
        reader.read()
        assert all(process.unreadable == 0 for process in reader.processes()), "half a line is kept"
        append(folder, WHOLE[place:])
        reader.read()
        (process,) = reader.processes()
        assert (process.pid, process.role, process.overhead_ms) == (7, ProcessRole.ENGINE_CORE, None)
        one, two = process.results
        assert (one.patch, one.outcome, one.ms) == ("one", PatchOutcome.APPLIED, 1.5)
        assert one.operations[0].detail == "“ßé”"
        assert two.outcome is PatchOutcome.PENDING
        assert reader.sockets() == {7: OWN_SOCKET}


def test_a_ledger_that_ends_at_any_byte_loses_only_its_last_line(tmp_path: Path) -> None:
    for place in range(len(WHOLE)):
        folder = tmp_path / str(place)
        folder.mkdir()
        reader = LedgerReader(folder, ["one"])
        append(folder, WHOLE[:place])
        changes = reader.read()
        assert len([change for change in changes if change.patch]) <= 1
        assert reader.read() == ()


def test_what_is_new_is_told_once(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, WHOLE)
    assert reader.read() == (LedgerChange(7, None), LedgerChange(7, "one"))
    assert reader.read() == ()
    append(tmp_path, settled("two", "skipped", reason="anchor_missing"))
    assert reader.read() == (LedgerChange(7, "two"),)
    assert reader.result(7, "two").reason is PatchReason.ANCHOR_MISSING


BAD = {
    "not JSON": b"{half\n",
    "no object": b"[1, 2]\n",
    "invalid UTF-8": b'{"v":1,"patch":"\xff\xfe"}\n',
    "another format": line("settled", patch="one", outcome="applied").replace(b'"v": 1', b'"v": 2'),
    "an unknown outcome": settled(outcome="excellent"),
    "an unknown reason": settled(outcome="skipped", reason="mood"),
    "an unknown role": settled().replace(b"EngineCore", b"Chef"),
    "a number that is none": settled(ms=float("nan")),
    "a NUL": b"\0\0\0\n",
    "longer than any line": b"x" * 200_000 + b"\n",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_line_that_cannot_be_read_is_counted_and_harms_no_other(
    reader: LedgerReader, tmp_path: Path, bad: bytes
) -> None:
    append(tmp_path, line("start") + bad + result())
    reader.read()
    (process,) = reader.processes()
    assert process.unreadable == 1
    assert process.results[0].outcome is PatchOutcome.APPLIED
    assert summary([process]) == "EngineCore 1 applied, 1 line unreadable"


def test_a_line_without_an_end_does_not_fill_the_memory(reader: LedgerReader, tmp_path: Path) -> None:
    for _ in range(4):
        append(tmp_path, b"x" * 50_000)
        reader.read()
    append(tmp_path, b"\n" + line("start") + settled())
    reader.read()
    (process,) = reader.processes()
    assert process.unreadable >= 1
    assert process.results[0].outcome is PatchOutcome.APPLIED


def test_blank_lines_and_other_files_are_nothing(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, b"\n  \n")
    append(tmp_path, b"{", "notes.txt")
    (tmp_path / "9.jsonl").mkdir()
    assert reader.read() == ()


def test_a_file_with_another_name_is_no_process(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, WHOLE, "core.jsonl")
    append(tmp_path, WHOLE, "7.jsonl.jsonl")
    assert reader.read() == ()
    assert reader.processes() == ()


def test_a_line_about_another_process_is_unreadable(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, line("start", pid=8))
    assert reader.read() == (LedgerChange(7, None),)
    (process,) = reader.processes()
    assert (process.pid, process.unreadable) == (7, 1)


def test_what_is_no_file_of_this_folder_is_not_read(reader: LedgerReader, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.jsonl")
    (tmp_path / "elsewhere").write_bytes(WHOLE)
    (tmp_path / "7.jsonl").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "8.jsonl").mkdir()
    assert reader.read() == ()


@pytest.mark.parametrize(
    "socket",
    ["/run/user/1000/bus", "/tmp/other/probe.sock", "/tmp/sndr-x/../bus/probe.sock", "", "probe.sock"],
)
def test_only_a_probe_is_asked(reader: LedgerReader, tmp_path: Path, socket: str) -> None:
    append(tmp_path, line("start") + line("probe", socket=socket))
    reader.read()
    assert reader.sockets() == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": 1e300},
        {"at": -1e300},
        {"overhead_ms": 1e300},
        {"rank": 2**70},
        {"detail": "x" * 70_000},
        {"target": "x" * 5000},
        {"socket": "x" * 5000},
        {"patch": "x" * 5000},
        {"ms": -1},
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_a_line_that_nobody_could_send_on_is_unreadable(
    reader: LedgerReader, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    append(tmp_path, line("start") + line("role", **wrong))
    reader.read()
    (process,) = reader.processes()
    assert process.unreadable == 1
    assert ProcessPatches.model_validate_json(process.model_dump_json()) == process


def test_what_is_kept_of_a_process_is_bounded(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, b"".join(result(patch=f"p{n}") for n in range(1000)))
    append(tmp_path, b"".join(result(patch="p0", target=f"vllm.t{n}") for n in range(1000)))
    while reader.read():
        pass
    (process,) = reader.processes()
    assert len(process.results) < 500
    assert max(len(one.operations) for one in process.results) <= 200


def test_a_file_that_was_replaced_counts_anew(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, WHOLE)
    reader.read()
    append(tmp_path, line("start") + result(outcome="failed", reason="raised"), "new")
    os.replace(tmp_path / "new", tmp_path / "7.jsonl")
    reader.read()
    (process,) = reader.processes()
    (operation,) = process.results[0].operations
    assert operation.outcome is PatchOutcome.FAILED


def test_a_file_that_was_cut_counts_anew(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, WHOLE)
    reader.read()
    (tmp_path / "7.jsonl").write_bytes(line("start") + result())
    reader.read()
    (process,) = reader.processes()
    assert len(process.results[0].operations) == 1


def test_a_file_that_is_gone_keeps_what_it_said(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, WHOLE)
    reader.read()
    (tmp_path / "7.jsonl").unlink()
    assert reader.read() == ()
    assert reader.result(7, "one").outcome is PatchOutcome.APPLIED


def test_a_second_start_of_a_process_counts_anew(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, WHOLE)
    reader.read()
    reader.probed(7, {"one": PatchProbe(at=1.0, live=True)})
    append(tmp_path, line("start", at=2.0) + result(target="vllm.b"))
    reader.read()
    found = reader.result(7, "one")
    assert [operation.target for operation in found.operations] == ["vllm.b"]
    assert found.probe is None
    assert reader.sockets() == {}


def test_an_operation_that_was_taken_back_is_one_operation(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, line("start") + result(target="vllm.a:f") + result(target="vllm.b:g"))
    reader.read()
    assert reader.result(7, "one").outcome is PatchOutcome.APPLIED, "its other modules may never come"
    append(tmp_path, result(target="vllm.c:h", outcome="failed", reason="raised"))
    append(tmp_path, result(target="vllm.a:f", outcome="reverted", reason="raised"))
    append(tmp_path, settled(outcome="failed", reason="raised", detail="why"))
    reader.read()
    found = reader.result(7, "one")
    assert (found.outcome, found.reason, found.detail) == (PatchOutcome.FAILED, PatchReason.RAISED, "why")
    assert [operation.outcome for operation in found.operations] == [
        PatchOutcome.REVERTED,
        PatchOutcome.APPLIED,
        PatchOutcome.FAILED,
    ]


def test_a_process_that_gets_its_name_later(reader: LedgerReader, tmp_path: Path) -> None:
    append(tmp_path, line("start", role="Helper"))
    reader.read()
    assert reader.processes() == (), "a helper that did nothing is not shown"
    append(tmp_path, line("role", role="Worker", rank=1))
    assert reader.read() == (LedgerChange(7, None),)
    assert reader.role(7) == (ProcessRole.WORKER, 1)


def test_processes_stand_in_order_and_the_sentence_says_what_is_wrong(tmp_path: Path) -> None:
    reader = LedgerReader(tmp_path, ["one", "two", "three"])
    for pid, role, rank in (
        (9, "Worker", 1),
        (5, "Worker", 0),
        (3, "EngineCore", None),
        (8, "APIServer", None),
    ):
        append(tmp_path, line("start", pid, role=role, rank=rank), f"{pid}.jsonl")
        append(tmp_path, settled().replace(b'"pid": 7', f'"pid": {pid}'.encode())
               .replace(b'"EngineCore", "rank": null',
                        f'"{role}", "rank": {json.dumps(rank)}'.encode()), f"{pid}.jsonl")  # fmt: skip
    append(
        tmp_path,
        line("settled", 3, patch="two", outcome="skipped", reason="anchor_missing")
        + line("settled", 3, patch="three", outcome="skipped", reason="anchor_missing")
        + line("settled", 3, patch="four", outcome="failed", reason="raised"),
        "3.jsonl",
    )
    reader.read()
    assert summary(reader.processes()) == (
        "API server 1 applied · EngineCore 1 applied, 2 skipped (anchor moved), 1 failed (raised an error)"
        " · Worker 0 1 applied · Worker 1 1 applied"
    )
    assert summary(()) == ""


def test_every_reason_has_words() -> None:
    assert set(REASONS) == set(PatchReason)


def test_an_applied_patch_may_say_what_it_chose(reader: LedgerReader, tmp_path: Path) -> None:
    told: dict[str, Any] = {"detail": "the kernels for Hopper run", "values": {"head_sizes": [64, 128]}}
    append(tmp_path, WHOLE + line("note", patch="one", **told))
    assert LedgerChange(7, "one") in reader.read()
    assert reader.result(7, "one").detail == "the kernels for Hopper run"
    assert reader.result(7, "one").values == {"head_sizes": (64, 128)}
    # A line of an older patch has none, one with too many or none at all is no line of ours.
    append(tmp_path, line("note", patch="one", detail="n") + line("note", patch="one", values={"a": ["b"]}))
    reader.read()
    assert (reader.result(7, "one").detail, reader.result(7, "one").values) == ("n", {})
    append(tmp_path, settled(outcome="skipped", reason="anchor_missing", detail="gone"))
    reader.read()
    assert reader.result(7, "one").detail == "gone", "of a patch that is not in force"
    assert reader.result(7, "one").values == {}
