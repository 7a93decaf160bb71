"""Memory is given back when much more is taken than was once enough, and nobody asks in vain for long."""

import sys

import pytest

from engine_host.daemon.memory import WORTH, MemoryKeeper, resident, trimmer
from tests.unit.asynchronous import run

MIB = 1 << 20


class Process:
    """Takes so many bytes, of which `free` can be given back."""

    def __init__(self, taken: int) -> None:
        self.taken = taken
        self.free = 0
        self.asked = 0

    def trim(self) -> None:
        self.asked += 1
        self.taken, self.free = self.taken - self.free, 0


def test_it_asks_after_a_flood_until_all_is_given_back() -> None:
    async def work() -> None:
        process = Process(70 * MIB)
        keeper = MemoryKeeper(process.trim, lambda: process.taken)
        await keeper.look()
        assert process.asked == 0
        process.taken = 500 * MIB
        await keeper.look()
        assert (process.asked, process.taken) == (1, 500 * MIB), "the flood goes on: nothing is free"
        process.free = 420 * MIB
        await keeper.look()
        assert (process.asked, process.taken) == (2, 80 * MIB)
        await keeper.look()
        assert process.asked == 2

    run(work())


def test_without_a_library_that_gives_back_nothing_is_done() -> None:
    async def work() -> None:
        keeper = MemoryKeeper(None, lambda: 10**12)
        await keeper.look()
        await keeper.keep()

    run(work())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_what_lies_between_things_that_stay_is_given_back() -> None:
    trim = trimmer()
    if trim is None:
        pytest.skip("this C library has no malloc_trim")
    before = resident()
    flood = [bytes(1_000 + number % 3_000) for number in range(60_000)]
    stays = flood[::100]
    del flood
    left = resident() - before
    trim()
    assert left > WORTH
    assert resident() - before < left / 2
    assert stays
