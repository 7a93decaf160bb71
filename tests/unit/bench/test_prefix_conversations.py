"""Conversations that are the same each time, and what is told of two runs of them."""

from itertools import pairwise
from typing import Any

from engine_host.bench.gpu.prefix_conversations import KINDS, Answer, Turn, Writer, compare, conversation


class Letters:
    """A tokenizer with a token for each character."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return [ord(letter) for letter in text]


def held(kind: str) -> list[list[Turn]]:
    """The rounds of a conversation whose answers are all "no"."""
    talk = conversation(kind, Writer(Letters(), 7))
    rounds = [next(talk)]
    try:
        while True:
            rounds.append(talk.send([Answer([110, 111]) for _ in rounds[-1]]))
    except StopIteration:
        return rounds


def test_a_next_turn_is_all_before_it_the_answer_and_new_text() -> None:
    for kind in ("plain", "tools", "cancel", "shared"):
        turns = [turn for [turn] in held(kind)]
        assert 4 <= len(turns) <= 6
        for earlier, later in pairwise(turns):
            before = (*earlier.prompt, 110, 111)
            assert later.prompt[: len(before)] == before
            assert len(later.prompt) > len(before)


def test_kinds_do_what_they_are_called() -> None:
    assert [turn.cancelled is not None for [turn] in held("cancel")][:2] == [False, True]
    assert [len(turns) for turns in held("branches")][:3] == [1, 1, 3]
    edited = [turn.prompt for [turn] in held("edit")]
    assert edited[-2][: len(edited[-3])] != edited[-3]
    assert held("plain") == held("plain")


def run(tokens: list[int], cached: int) -> dict[str, Any]:
    answer = {"prompt": 30, "shared": 25, "tokens": tokens, "best": [-1.0] * len(tokens), "cached": cached}
    talks = [{"kind": kind, "answers": [answer]} for kind in KINDS]
    return {"caching": True, "block": 10, "counters": {}, "conversations": talks}


def test_equal_answers_and_what_came_from_the_cache_are_counted() -> None:
    found = compare(run([1, 2], 0), run([1, 2], 10))
    assert (found["same"], found["conversations"], found["apart"]) == (6, 6, 0.0)
    assert (found["cached_tokens"], found["reachable_tokens"]) == (60, 120)
    assert found["acceptance_length"] is None
    assert found["after_hit"] == {"answers": 6, "differ": 0, "moved": [0.0, 0.0, 0.0]}
    assert found["without_hit"] == {"answers": 0, "differ": 0, "moved": []}
    other = compare(run([1, 2], 0), run([1, 3], 10))
    assert (other["same"], other["after_hit"]["differ"]) == (0, 6)


def test_longer_texts_begin_as_often_as_asked() -> None:
    assert len(Writer(Letters(), 7, 3).beginning(10)) > 2 * len(Writer(Letters(), 7).beginning(10))
