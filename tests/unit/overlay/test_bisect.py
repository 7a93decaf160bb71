"""The search for the patches that fail: each smallest set, with few questions."""

import asyncio
import itertools
import math
from collections.abc import Iterable

import pytest

from engine_host.overlay.bisect import culprits


class Engine:
    """Fails when it holds one of these sets; counts what it was asked."""

    def __init__(self, *guilty: Iterable[str]) -> None:
        self.guilty = [set(names) for names in guilty]
        self.tried: list[tuple[str, ...]] = []

    async def fails(self, chosen: tuple[str, ...]) -> bool:
        self.tried.append(chosen)
        return any(names <= set(chosen) for names in self.guilty)


PATCHES = tuple("abcdefghijkl")


def found(engine: Engine, patches: Iterable[str] = PATCHES) -> tuple[tuple[str, ...], ...]:
    return asyncio.run(culprits(tuple(patches), engine.fails))


@pytest.mark.parametrize("guilty", PATCHES)
def test_one_culprit_is_found_with_few_starts(guilty: str) -> None:
    engine = Engine(guilty)
    assert found(engine) == ((guilty,),)
    assert len(engine.tried) <= math.ceil(math.log2(len(PATCHES))) + 2


@pytest.mark.parametrize("pair", list(itertools.combinations(PATCHES, 2))[::5])
def test_patches_that_fail_only_together_are_named_together(pair: tuple[str, str]) -> None:
    assert found(Engine(pair)) == (pair,)


def test_three_that_fail_only_together() -> None:
    assert found(Engine("bgk")) == (("b", "g", "k"),)


def test_several_culprits_are_all_found() -> None:
    engine = Engine("c", "fi", "l")
    assert set(found(engine)) == {("c",), ("f", "i"), ("l",)}


def test_no_set_is_asked_twice_nor_the_two_that_are_known() -> None:
    engine = Engine("c", "fi")
    found(engine)
    assert len(engine.tried) == len(set(engine.tried))
    assert not {(), PATCHES} & set(engine.tried)


def test_every_question_is_in_the_order_of_application() -> None:
    engine = Engine("bgk", "d")
    found(engine)
    assert all(list(tried) == sorted(tried) for tried in engine.tried)


def test_the_only_suspect_is_named_without_a_question() -> None:
    engine = Engine("a")
    assert found(engine, "a") == (("a",),)
    assert engine.tried == []
