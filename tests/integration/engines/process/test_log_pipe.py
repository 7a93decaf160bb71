"""The log of an engine: written by a process of its own, bounded, and whole whoever of the others dies."""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from engine_host.engines.process import log_pipe
from engine_host.engines.process.spawn import EngineProcess
from engine_host.engines.served_lines import ServedLines
from tests.unit.asynchronous import run, until
from tests.unit.full_disk import small_disk

SERVED = ServedLines(prefix="(?:T: )?", templates=("line #",))
# Prints a line for each one that it reads from a FIFO: N lines of numbers, or the text itself.
TALKER = """
import sys
with open(sys.argv[1]) as asked:
    while word := asked.readline().strip():
        if word.isdigit():
            for number in range(int(word)):
                print("line", number)
        else:
            print(word)
        sys.stdout.flush()
"""


class Talker:
    """An engine that prints what it is told, and its log."""

    def __init__(self, home: Path, *, keep: bool = False) -> None:
        self.log = home / "logs" / "e.log"
        self.ears = home / "ears"
        os.mkfifo(self.ears)
        argv = [sys.executable, "-I", "-S", "-c", TALKER, str(self.ears)]
        self.process = EngineProcess.start(argv, {}, self.log, keep=keep, served=SERVED)
        # Opened to read as well: it must not wait for the talker.
        self.mouth = os.open(self.ears, os.O_RDWR)

    def say(self, *words: str) -> None:
        for word in words:
            os.write(self.mouth, f"{word}\n".encode())

    @property
    def before(self) -> Path:
        return self.log.with_name("e.log.1")

    def size(self) -> int:
        return sum(path.stat().st_size for path in (self.log, self.before) if path.exists())

    async def written(self, text: str) -> None:
        """Wait until the log ends with a line."""
        await until(lambda: self._text().endswith(f"{text}\n"))

    def _text(self) -> str:
        # Between two files of the log there is none.
        with contextlib.suppress(FileNotFoundError):
            return self.log.read_text()
        return ""

    def again(self) -> EngineProcess:
        """The same process as the next host finds it."""
        found = EngineProcess.adopt(self.process.record, self.log, SERVED)
        assert found is not None
        return found

    async def end(self, again: EngineProcess | None = None) -> None:
        """End it, through the host that has it now."""
        os.close(self.mouth)
        process = again or self.process
        await process.stop(0)
        await process.release()
        # This Python is its parent and has to collect it.
        assert self.process.exit_code is not None


def writers(log: Path) -> list[psutil.Process]:
    """The processes that write this log."""
    found = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
        except psutil.Error:
            continue
        if str(log) in line and any(word.endswith("log_writer.py") for word in line):
            found.append(process)
    return found


async def killed_writer(log: Path) -> int:
    (writer,) = writers(log)
    writer.kill()
    await until(lambda: writer.pid not in [one.pid for one in writers(log)])
    return writer.pid


def _has(lines: list[str], count: int) -> bool:
    return len(lines) >= count


async def read_until(lines: list[str], process: EngineProcess, last: str) -> None:
    """Follow a log up to a line."""
    async for batch in process.lines():
        lines += batch
        if lines[-1] == last:
            return


def test_a_log_is_bounded_and_followed_over_its_beginnings(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pipe, "LARGEST_LOG", 20_000)

    async def work() -> None:
        talker = Talker(home)
        lines: list[str] = []
        following = asyncio.create_task(read_until(lines, talker.process, "the end"))
        for turn in range(1, 9):
            talker.say("1000")
            # A follower that is never more than a file behind misses nothing.
            await until(partial(_has, lines, 1000 * turn))
        talker.say("the end")
        await following
        assert lines == [*([f"line {number}" for number in range(1000)] * 8), "the end"]
        assert talker.before.exists()
        assert talker.size() <= 2 * 20_000 + (1 << 16)
        assert talker.log.stat().st_mode & 0o777 == 0o600
        await talker.end()

    run(work())


def test_the_log_of_a_kept_engine_is_bounded_while_no_host_runs(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pipe, "LARGEST_LOG", 50_000)

    async def work() -> None:
        talker = Talker(home, keep=True)
        talker.say("the first host")
        await talker.written("the first host")
        await talker.process.release()
        # 2.8 MB, and nobody who follows.
        talker.say(*["10000"] * 20, "nobody saw it")
        await talker.written("nobody saw it")
        assert talker.size() <= 2 * 50_000 + (1 << 16)

        again = talker.again()
        lines: list[str] = []
        talker.say("the next host")
        await read_until(lines, again, "the next host")
        assert lines[-2:] == ["nobody saw it", "the next host"]
        numbers = [int(line.split()[1]) for line in lines if line.startswith("line ")]
        assert all(b in (a + 1, 0) for a, b in itertools.pairwise(numbers)), "none twice, none lost"
        assert len(writers(talker.log)) == 1
        await talker.end(again)

    run(work())


def test_a_host_that_comes_and_goes_has_each_line_once(home: Path) -> None:
    async def work() -> None:
        talker = Talker(home, keep=True)
        await talker.process.release()
        for number in range(4):
            host = talker.again()
            lines: list[str] = []
            talker.say(f"host {number}")
            await read_until(lines, host, f"host {number}")
            assert lines == [f"host {one}" for one in range(number + 1)]
            await host.release()
        await talker.end(talker.again())

    run(work())


def test_a_killed_writer_is_replaced_and_no_line_is_lost(home: Path) -> None:
    async def work() -> None:
        talker = Talker(home)
        lines: list[str] = []
        following = asyncio.create_task(read_until(lines, talker.process, "after"))
        talker.say("before")
        await until(lambda: lines == ["before"])
        first = await killed_writer(talker.log)
        talker.say("1000", "after")
        await following
        assert lines == ["before", *(f"line {number}" for number in range(1000)), "after"]
        assert [one.pid for one in writers(talker.log)] != [first]
        assert talker.process.running
        await talker.end()

    run(work())


def test_a_kept_engine_survives_the_end_of_its_writer_and_the_next_host_starts_another(home: Path) -> None:
    async def work() -> None:
        talker = Talker(home, keep=True)
        talker.say("before")
        await talker.written("before")
        await talker.process.release()
        await killed_writer(talker.log)
        again = talker.again()
        lines: list[str] = []
        following = asyncio.create_task(read_until(lines, again, "line 9"))
        await until(lambda: bool(writers(talker.log)))
        talker.say("a text of a request", "10")
        await following
        # Whether requests had come nobody can say now, so the new writer takes it that they had.
        assert lines == ["before", "[withheld: 19 bytes]", *(f"line {number}" for number in range(10))]
        await talker.end(again)

    run(work())


@pytest.mark.parametrize("found_again", [False, True])
def test_once_requests_may_come_only_known_lines_are_written(home: Path, found_again: bool) -> None:
    async def work() -> None:
        talker = Talker(home, keep=found_again)
        if found_again:
            await talker.process.release()
        process = talker.again() if found_again else talker.process
        talker.say("anything")
        await talker.written("anything")
        await process.withhold_requests()
        talker.say("secret", "T: secret", "1")
        await talker.written("line 0")
        assert talker.log.read_text() == "anything\n[withheld: 6 bytes]\nT: [withheld: 6 bytes]\nline 0\n"
        await process.withhold_requests()
        talker.say("secret")
        await talker.written("[withheld: 6 bytes]")
        if not found_again:
            await killed_writer(talker.log)
            following = asyncio.create_task(read_until([], process, "line 0"))
            talker.say("secret", "1")
            await until(lambda: talker.log.read_text().count("line 0") == 2)
            following.cancel()
            assert "secret" not in talker.log.read_text()
        await talker.end(process)

    run(work())


def test_a_full_disk_costs_lines_and_says_so(home: Path) -> None:
    async def work() -> None:
        with small_disk(home / "disk") as disk:
            if not disk.real:
                pytest.skip("needs a disk of its own")
            talker = Talker(disk.folder)
            talker.say("before")
            await talker.written("before")
            with disk.full():
                talker.say("20000", "4")
                await asyncio.sleep(0.5)
                assert talker.process.running
            talker.say("after")
            await talker.written("after")
            assert "lines are lost: No space left on device]" in talker.log.read_text()
            await talker.end()

    run(work())


def test_the_writer_ends_with_its_engine_and_leaves_nothing(home: Path) -> None:
    async def work() -> None:
        talker = Talker(home)
        talker.say("last")
        await talker.written("last")
        os.kill(talker.process.pid, signal.SIGKILL)
        await talker.process.ended()
        await talker.process.log_written()
        assert not writers(talker.log)
        await talker.end()
        log_pipe.remove_log(talker.log)
        assert list(talker.log.parent.iterdir()) == []

    run(work())
