"""Ledgers and probes that hostile patches write: whoever runs in an engine can write anything there."""

import asyncio
import json
import os
import socket as sockets
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from engine_host.overlay.ledger import LedgerReader
from engine_host.overlay.probing import probe
from engine_host.overlay.summary import summary
from engine_host.protocol.patches import ProcessPatches
from tests.hostile.effort import fuzz, linear, peak_memory
from tests.hostile.making.text import words
from tests.hostile.making.values import changed, nested, values, written

pytestmark = pytest.mark.fuzz
LINE: dict[str, Any] = {
    "v": 1,
    "at": 1.5,
    "pid": 7,
    "ppid": 1,
    "role": "EngineCore",
    "rank": 0,
    "event": "result",
    "patch": "one",
    "op": "rebind",
    "target": "vllm.a",
    "outcome": "applied",
    "reason": None,
    "before": "a",
    "after": "b",
    "ms": 1.5,
    "detail": "d",
    "overhead_ms": 2.0,
    "socket": "/tmp/7.sock",
}
EVENTS = ("start", "result", "settled", "role", "probe")
REPORT: dict[str, Any] = {"pid": 7, "patches": {"one": {"live": True, "why": "w", "hits": 3}}}
_sound = st.sampled_from([{**LINE, "event": event} for event in EVENTS])
_lines = st.one_of(
    _sound.map(written),
    _sound.flatmap(lambda line: changed(line, 3)).map(written),
    values.map(written),
    st.binary(max_size=60),
    words.map(lambda word: word.encode("utf-8", "replace")),
    st.sampled_from([nested("list", 30_000), b"{" * 100, b"x" * 70_000]),
)
ledgers = st.lists(
    st.tuples(
        st.sampled_from(["7.jsonl", "7.jsonl", "8.jsonl", "0.jsonl", "x.jsonl"]), _lines, st.booleans()
    ),
    max_size=12,
)


def test_ledgers() -> None:
    def check(made: list[tuple[str, bytes, bool]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            reader = LedgerReader(Path(folder), ["one", "two"])
            for name, line, ends in made:
                with (Path(folder) / name).open("ab") as file:
                    file.write(line + b"\n" if ends else line)
                for change in reader.read():
                    if change.patch is not None:
                        reader.result(change.pid, change.patch).model_dump_json()
                        reader.role(change.pid)
            processes = reader.processes()
            summary(processes)
            for process in processes:
                assert ProcessPatches.model_validate_json(process.model_dump_json()) == process
            for path in reader.sockets().values():
                assert Path(path).parent == Path(folder) or Path(path).name == "probe.sock"

    fuzz("ledgers", ledgers, check)


def test_a_large_ledger_is_read_piece_by_piece(tmp_path: Path) -> None:
    line = json.dumps(LINE).encode() + b"\n"
    (tmp_path / "7.jsonl").write_bytes(line * ((24 << 20) // len(line)))
    reader = LedgerReader(tmp_path, ["one"])
    assert peak_memory(reader.read) < 16 << 20

    def of(size: int) -> Any:
        folder = tmp_path / str(size)
        folder.mkdir(exist_ok=True)
        (folder / "7.jsonl").write_bytes(line * size)
        return lambda: LedgerReader(folder, ["one"]).read()

    linear(of, 300)


def test_probes() -> None:
    loop = asyncio.new_event_loop()
    said = [b""]

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said[0])
        writer.close()

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "7.sock")
        server = loop.run_until_complete(asyncio.start_unix_server(answer, path))

        def check(content: bytes) -> None:
            said[0] = content
            for patches in loop.run_until_complete(probe({7: path})).values():
                for one in patches.values():
                    assert type(one).model_validate_json(one.model_dump_json()) == one

        made = st.one_of(changed(REPORT).map(written), values.map(written), st.binary(max_size=50))
        try:
            fuzz("probes", made, check, usual=0.5)
        finally:
            server.close()
            loop.run_until_complete(server.wait_closed())
            loop.close()


def test_a_socket_that_never_answers_is_left_out(tmp_path: Path) -> None:
    with sockets.socket(sockets.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "7.sock"))
        silent.listen()
        assert asyncio.run(probe({7: str(tmp_path / "7.sock")}, seconds=0.1)) == {}
