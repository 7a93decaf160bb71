"""Real processes: followed through their log, found again, and ended with all their children."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.process.spawn import EngineProcess, ProcessRecord
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import run, until
from tests.unit.full_disk import small_disk

DEAF = "trap '' TERM; echo deaf; while :; do sleep 0.1; done"
# The host of a process, so that a test can kill it.
OWNER = """
import asyncio, sys
from pathlib import Path
from engine_host.engines.process.spawn import EngineProcess
async def main():
    process = EngineProcess.start(
        ["/bin/sleep", "300"], {}, Path(sys.argv[1]), keep=sys.argv[2] == "keep"
    )
    print(process.record.pid, process.record.born, flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
"""


def shell(home: Path, script: str, *, keep: bool = False) -> EngineProcess:
    return EngineProcess.start(["/bin/sh", "-c", script], {}, home / "logs" / "e.log", keep=keep)


async def all_lines(process: EngineProcess) -> list[str]:
    return [line async for batch in process.lines() for line in batch]


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_its_output_is_in_the_log_and_its_exit_code_is_known(home: Path) -> None:
    async def work() -> None:
        process = shell(home, "echo out; echo err >&2; exit 3")
        assert await all_lines(process) == ["out", "err"]
        assert not process.running
        assert process.exit_code == 3
        assert (home / "logs" / "e.log").stat().st_mode & 0o777 == 0o600
        await process.release()

    run(work())


def test_the_environment_is_ours_plus_the_plans_less_what_must_not_reach_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_ARG_CTX", "1")
    monkeypatch.setenv("INHERITED", "2")

    async def work() -> None:
        process = EngineProcess.start(
            ["/usr/bin/env"], {"GIVEN": "3"}, home / "e.log", keep=False, without=("LLAMA_ARG_",)
        )
        lines = await all_lines(process)
        assert {"INHERITED=2", "GIVEN=3"} <= set(lines)
        assert not any(line.startswith("LLAMA_ARG_") for line in lines)
        await process.release()

    run(work())


def test_a_program_that_is_not_there_ends_with_127_and_says_so(home: Path) -> None:
    async def work() -> None:
        process = EngineProcess.start(["/no/such/server"], {}, home / "e.log", keep=False)
        assert "cannot run /no/such/server" in (await all_lines(process))[0]
        assert process.exit_code == 127
        await process.stop()
        await process.release()

    run(work())


def test_lines_come_whole_while_it_still_runs(home: Path) -> None:
    async def work() -> None:
        process = shell(home, r"printf 'par'; sleep 0.2; printf 'tial\r\nrest'; sleep 300")
        reader = process.lines()
        assert await anext(reader) == ["partial"]
        await process.stop(0)
        assert [batch async for batch in reader] == [["rest"]]
        await process.release()

    run(work())


def test_bytes_that_are_no_text_and_endless_lines_are_survived(home: Path) -> None:
    script = (
        "import os; os.write(1, b'\\xff\\xfe ok\\n'); os.write(1, b'x' * 3_000_000); os.write(1, b'\\nend')"
    )

    async def work() -> None:
        process = EngineProcess.start([sys.executable, "-c", script], {}, home / "e.log", keep=False)
        lines = await all_lines(process)
        assert lines[0] == "\ufffd\ufffd ok"
        assert lines[-1] == "end"
        assert "".join(lines[1:-1]) == "x" * 3_000_000
        assert max(map(len, lines)) < 1_000_000
        await process.release()

    run(work())


def test_a_log_that_was_removed_is_no_reason_to_miss_the_end(home: Path) -> None:
    async def work() -> None:
        process = shell(home, "sleep 0.2")
        (home / "logs" / "e.log").unlink()
        assert await all_lines(process) == []
        assert not process.running
        await process.release()

    run(work())


def test_ends_at_sigterm_with_its_grandchildren(home: Path) -> None:
    async def work() -> None:
        process = shell(home, "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.1; done' & sleep 300")
        grandchild = int((await anext(process.lines()))[0])
        assert alive(grandchild)
        await process.stop(5)
        assert process.exit_code == -signal.SIGTERM
        await until(lambda: not alive(grandchild))
        await process.stop(5)
        await process.release()

    run(work())


def test_one_that_ignores_sigterm_is_killed_after_its_grace(home: Path) -> None:
    async def work() -> None:
        process = shell(home, DEAF)
        await anext(process.lines())
        await process.stop(0.2)
        assert process.exit_code == -signal.SIGKILL
        await process.release()

    run(work())


def test_a_stop_now_overtakes_a_patient_one(home: Path) -> None:
    async def work() -> None:
        process = shell(home, DEAF)
        await anext(process.lines())
        patient = asyncio.create_task(process.stop(300))
        await asyncio.sleep(0)
        await process.stop(0)
        await patient
        assert process.exit_code == -signal.SIGKILL
        await process.release()

    run(work())


def test_release_lets_it_run_and_it_is_found_again(home: Path) -> None:
    async def work() -> None:
        process = shell(home, "echo before; sleep 300", keep=True)
        await anext(process.lines())
        await process.release()
        assert alive(process.pid)
        again = EngineProcess.adopt(process.record, home / "logs" / "e.log")
        assert again is not None
        assert again.exit_code is None
        assert await anext(again.lines()) == ["before"], "its log is read from the start"
        assert again.memory()
        await again.stop()
        assert not again.running
        assert not alive(process.pid)
        assert again.memory() is None
        await again.release()
        assert EngineProcess.adopt(process.record, home / "logs" / "e.log") is None
        assert process.exit_code is not None

    run(work())


def test_of_a_long_log_of_one_found_again_come_the_beginning_and_the_end(home: Path) -> None:
    log = home / "logs" / "e.log"
    wait = f"while [ ! -e {home}/go ]; do sleep 0.05; done"

    async def work() -> None:
        process = shell(
            home, f"seq -f 'line %08.0f' 400000; echo 'at its end'; {wait}; echo later", keep=True
        )
        await until(lambda: log.read_bytes().endswith(b"at its end\n"))
        await process.release()
        size = log.stat().st_size
        again = EngineProcess.adopt(process.record, log)
        assert again is not None
        reader = again.lines()
        lines: list[str] = []
        while lines[-1:] != ["at its end"]:
            lines += await anext(reader)
        (home / "go").touch()
        assert await anext(reader) == ["later"]
        assert [batch async for batch in reader] == []
        await again.stop(0)
        await again.release()

        (gap,) = [number for number, line in enumerate(lines) if not line.startswith("line ")][:-1]
        head, tail = lines[:gap], lines[gap + 1 : -1]
        assert head == [f"line {number:08}" for number in range(1, len(head) + 1)]
        assert tail == [f"line {number:08}" for number in range(400_001 - len(tail), 400_001)]
        assert 100_000 < 14 * len(head) < 300_000
        assert 100_000 < 14 * len(tail) < 300_000
        assert lines[gap] == (
            f"[{size - 14 * len(head) - 14 * len(tail) - 11} bytes are left out here; the whole log is {log}]"
        )
        assert process.exit_code is not None

    run(work())


def test_the_end_of_a_long_log_begins_with_a_whole_line(home: Path) -> None:
    chunk = 1 << 18
    beginnings = {
        "a line begins exactly there": b"x" * (2 * chunk) + b"\n" + b"y" * (chunk - 1) + b"\n",
        "one begins a little later": b"x" * (2 * chunk) + b"z\n" + b"y" * (chunk - 9) + b"\n",
        "it is one line alone": b"x" * (3 * chunk + 5),
    }
    wanted = [["y" * (chunk - 1)], ["y" * (chunk - 9)], ["x" * chunk]]

    async def work(content: bytes) -> list[str]:
        process = shell(home, "sleep 300", keep=True)
        await process.release()
        log = home / "logs" / "e.log"
        log.write_bytes(content)
        again = EngineProcess.adopt(process.record, log)
        assert again is not None
        await again.stop(0)
        lines = await all_lines(again)
        await again.release()
        assert process.exit_code is not None
        return lines[lines.index(next(line for line in lines if line.startswith("["))) + 1 :]

    assert [run(work(content)) for content in beginnings.values()] == wanted


def test_whoever_else_waits_has_a_turn_between_the_batches_of_a_long_log(home: Path) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work() -> None:
        process = shell(home, "seq 400000")
        await process.ended()
        waiting = asyncio.create_task(others())
        await asyncio.sleep(0)
        seen = [turns async for _batch in process.lines()]
        waiting.cancel()
        await process.release()
        assert len(seen) > 5
        assert seen == sorted(set(seen)), "nobody else had a turn between two batches"

    run(work())


def test_a_number_that_belongs_to_another_process_now_is_not_adopted(home: Path) -> None:
    async def work() -> None:
        process = shell(home, "sleep 300")
        for record in (
            replace(process.record, born=process.record.born + "0"),
            replace(process.record, born=""),
            ProcessRecord(2**22 + 1, process.record.born),
        ):
            assert EngineProcess.adopt(record, home / "logs" / "e.log") is None
        assert process.running
        await process.stop(0)
        await process.release()

    run(work())


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel watches the owner on Linux alone")
@pytest.mark.parametrize("keep", [False, True])
def test_a_killed_owner_takes_its_process_along_unless_it_is_kept(home: Path, keep: bool) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(home / "e.log"), "keep" if keep else "end"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    pid, born = owner.stdout.readline().split()
    # Until it has become the engine it may not be bound yet.
    record = ProcessRecord(int(pid), born)

    async def work() -> None:
        await until(lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0])
        owner.send_signal(signal.SIGKILL)
        owner.communicate(timeout=10)
        if not keep:
            await until(lambda: not alive(int(pid)))
            assert EngineProcess.adopt(record, home / "e.log") is None
            return
        process = EngineProcess.adopt(record, home / "e.log")
        assert process is not None
        await process.stop()
        await process.release()

    run(work())


def test_a_folder_in_the_way_of_the_log_is_named(home: Path) -> None:
    (home / "e.log").mkdir()
    with pytest.raises(HostError) as raised:
        EngineProcess.start(["/bin/true"], {}, home / "e.log", keep=False)
    assert raised.value.reason is Reason.NOT_WRITABLE


def test_a_full_disk_loses_the_log_and_not_the_engine(home: Path) -> None:
    async def work() -> None:
        with small_disk(home / "disk") as disk:
            if not disk.real:
                pytest.skip("needs a disk of its own")
            with disk.full():
                process = EngineProcess.start(
                    ["/bin/sh", "-c", "echo lost; exit 7"], {}, disk.folder / "e.log", keep=False
                )
                assert await all_lines(process) == []
                assert process.exit_code == 7
                await process.release()

    run(work())


def test_leaves_no_descriptor_open(home: Path) -> None:
    async def work() -> None:
        def count() -> int:
            return len(os.listdir("/proc/self/fd"))

        before = count()
        for _ in range(3):
            process = shell(home, "echo x")
            await all_lines(process)
            await process.release()
        assert count() == before

    run(work())
