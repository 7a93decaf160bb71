"""A file from outside costs time in proportion to its size, and never much."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from engine_host.catalog.exchange import check_import, export
from engine_host.catalog.index import Catalog
from engine_host.catalog.reader import Place
from engine_host.catalog.yaml.file import MAX_BYTES, parse
from engine_host.core.errors import HostError
from tests.pace import within
from tests.unit.catalog.small import VARIATION, Small

# Twice as much may take three times as long: what is squared takes four times.
_RATIO = 3.0
_SECONDS = 5.0


def _in_preset(text: str, lines: str) -> str:
    return text.replace("\nextends:\n", f"\n{lines}extends:\n", 1)


# By what they are large in: a text of a size, of the exported one.
_NASTY: dict[str, Callable[[str, int], str]] = {
    "unknown keys": lambda text, n: _in_preset(text, "".join(f"  k{i}: 1\n" for i in range(n))),
    "unknown keys at the top": lambda text, n: text + "".join(f"k{i}: 1\n" for i in range(n)),
    "unknown settings": lambda text, n: text.replace(
        "  settings:\n", "  settings:\n" + "".join(f"    k{i}: 1\n" for i in range(n)), 1
    ),
    "wrong items": lambda text, n: _in_preset(text, f"  notes: [{'1,' * n}]\n"),
    "empty lists": lambda text, n: _in_preset(text, f"  notes: [{'[],' * n}]\n"),
    "one long word": lambda text, n: _in_preset(text, f"  summary: {'a' * n * 20}\n"),
    "a long quoted text": lambda text, n: _in_preset(text, '  summary: "' + "a\\n" * n * 10 + '"\n'),
    "a long block": lambda text, n: _in_preset(text, "  summary: |\n" + "    a\n" * n * 5),
    "a long number": lambda text, n: _in_preset(text, f"  notes: [{'1' * n * 20}]\n"),
    "the same key": lambda text, n: text + "a: 1\n" * n,
    "comments": lambda text, n: text + "#\n" * n * 20,
    "directives": lambda text, n: "%A b\n" * n + "---\n" + text,
    "depth": lambda text, n: text + "x: " + "[" * n * 10,
    "aliases": lambda text, n: text + "x: &a [1]\n" + "y: [*a]\n" * n,
}


@pytest.fixture
def exported(small: Small) -> tuple[Catalog, str, Place]:
    small.write_own("mine", VARIATION)
    text = export(small.read(), "mine")
    (small.own / "mine.yaml").unlink()
    return small.read(), text, small.place


def _seconds(catalog: Catalog, text: str, place: Place) -> float:
    """Return the processor's time for one import, whether or not it is refused."""
    began = time.process_time()
    with suppress(HostError):
        check_import(catalog, text, place)
    return time.process_time() - began


@pytest.mark.parametrize("kind", _NASTY)
def test_twice_the_size_takes_no_more_than_thrice_the_time(
    exported: tuple[Catalog, str, Place], kind: str
) -> None:
    catalog, text, place = exported
    small, large = (_NASTY[kind](text, n) for n in (1500, 3000))
    one, two = min(_seconds(catalog, small, place) for _ in range(2)), math.inf
    # What is in proportion shows it at once; what is not, or was disturbed, is looked at again.
    for _ in range(3):
        two = min(two, _seconds(catalog, large, place))
        if two < max(one * _RATIO, 0.05):
            return
        one = min(one, _seconds(catalog, small, place))
    raise AssertionError(f"{one:.3f} s, then {two:.3f} s")


@pytest.mark.parametrize("kind", _NASTY)
def test_the_largest_file_takes_seconds(exported: tuple[Catalog, str, Place], kind: str) -> None:
    catalog, text, place = exported
    sizes: Iterator[int] = (n for n in (64_000, 32_000, 16_000, 8_000, 4_000))
    largest = next(one for n in sizes if len((one := _NASTY[kind](text, n)).encode()) <= MAX_BYTES)
    assert within(_seconds(catalog, largest, place), _SECONDS)


def test_what_is_larger_than_any_such_file_is_not_read() -> None:
    with pytest.raises(HostError, match="larger than any such file"):
        parse("a: " + "x" * MAX_BYTES, "f")
    with pytest.raises(HostError, match="more values than any such file"):
        parse("a: [" + "1," * 30_000 + "]", "f")


def test_not_every_fault_of_a_file_is_told(exported: tuple[Catalog, str, Place]) -> None:
    catalog, text, place = exported
    with pytest.raises(HostError) as caught:
        check_import(catalog, _NASTY["unknown keys"](text, 3000), place)
    faults = caught.value.problem.evidence["faults"]
    assert len(faults) == 101
    assert "2,900 more places are wrong" in faults[-1]["message"]
