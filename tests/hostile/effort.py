"""Runs a check over generated input for as long as is asked, and judges what it says and costs.

Everything follows from the seed (`SNDR_FUZZ_SEED`), so what was found once is found again.
"""

import gc
import json
import math
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.strategies import SearchStrategy

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Problem
from tests.hostile.asked import fuzz_seconds, fuzz_seed
from tests.pace import slower

T = TypeVar("T")
CPU_LIMIT = 0.100
"""Seconds of processor time that no file with absurd numbers may take."""
MEMORY_LIMIT = 50 << 20
"""Bytes that it may take."""
_ROUND = 100
_LONGEST_MESSAGE = 8_000
_LARGEST_PROBLEM = 256 << 10
_UNCLEAR = ("Traceback", "KeyError", "TypeError", "AttributeError", "NoneType")
_CONTROL = {*map(chr, range(32)), "\x7f", *map(chr, range(0x80, 0xA0))} - {"\n", "\t"}


@dataclass
class Cost:
    """The dearest input so far: seconds of processor time, and bytes."""

    seconds: float = 0.0
    memory: int = 0


def fuzz(name: str, made: SearchStrategy[T], check: Callable[[T], object], usual: float = 1.0) -> None:
    """Check generated input for `usual` seconds, or as long as `make fuzz` was asked; print a line of it."""
    counted = 0
    slowest = 0.0
    began = time.monotonic()
    end = began + fuzz_seconds(usual)
    number = fuzz_seed()

    def one(value: T) -> None:
        nonlocal counted, slowest
        at = time.thread_time()
        check(value)
        counted, slowest = counted + 1, max(slowest, time.thread_time() - at)

    while True:
        settled = settings(
            max_examples=_ROUND,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.target, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        seed(number)(settled(given(made)(one)))()
        number += 1
        if time.monotonic() >= end:
            break
    spent = time.monotonic() - began
    print(f"{name:<44} {counted:>8,} inputs {spent:>7.1f} s   slowest {slowest * 1000:>8.1f} ms")


def clear(act: Callable[[], T]) -> T | None:
    """Return what an act returns, None where it ends in a clear error of ours; others are raised."""
    try:
        return act()
    except HostError as error:
        check_problem(error.problem)
        said = error.problem.message
    found = [word for word in _UNCLEAR if word in said]
    assert not found, said
    return None


def check_problem(problem: Problem) -> None:
    """Fail for an error that nobody can show, send or read."""
    sentence = problem.sentence()
    assert problem.message.strip(), problem
    assert len(sentence) <= _LONGEST_MESSAGE, f"{len(sentence)} letters: {sentence[:200]}"
    sent = problem.model_dump_json()
    assert len(sent) <= _LARGEST_PROBLEM, f"{len(sent)} bytes"
    assert Problem.model_validate_json(sent).reason is problem.reason
    json.dumps(problem.evidence, allow_nan=False)


def cheap(act: Callable[[], object], seconds: float = CPU_LIMIT, memory: int = MEMORY_LIMIT) -> Cost:
    """Fail where an act takes more processor time or memory than that; what was seen last is repeated."""
    spent = _seconds(act)
    most = seconds
    for _ in range(4):
        # A busy machine adds to it and never takes away; a slow one takes longer for everything.
        if spent < most:
            break
        most = seconds * slower()
        spent = min(spent, _seconds(act))
    assert spent < most, f"it took {spent * 1000:.0f} ms of processor time"
    peak = peak_memory(act)
    assert peak < memory, f"it took {peak / 2**20:.1f} MiB"
    return Cost(spent, peak)


def peak_memory(act: Callable[[], object]) -> int:
    """Return the most bytes that an act held at once, of what Python allocates."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def linear(
    act: Callable[[int], Callable[[], object]], small: int, times: int = 8, slack: float = 3.0
) -> None:
    """Fail where input of `times` the size takes far more than `times` as long; `act` is made of a size."""

    one, many = act(small), act(small * times)
    short = min(_seconds(one) for _ in range(3))
    long = math.inf
    # What is in proportion shows it at once; what is not, or was disturbed, is looked at again.
    for _ in range(12):
        long = min(long, _seconds(many))
        if long <= short * times * slack + 0.005:
            return
        short = min(short, _seconds(one))
    raise AssertionError(f"{small}: {short * 1000:.2f} ms, {small * times}: {long * 1000:.2f} ms")


def control_characters(text: str) -> set[str]:
    """Return the characters in a text that a terminal would obey."""
    return _CONTROL.intersection(text)


def _seconds(act: Callable[[], Any]) -> float:
    # A collection walks over all that the tests before left, which is no work of what is measured.
    collects = gc.isenabled()
    gc.disable()
    try:
        at = time.thread_time()
        act()
        return time.thread_time() - at
    finally:
        if collects:
            gc.enable()
