"""The engines that are kept as right: the user's own, or those that a person names."""

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import KeepProfile, RemoteEngine, RemoteFacts
from engine_host.remote.profile import chosen_engines


def engine(pid: int, user: str, kind: str = "vllm", port: int = 8000) -> RemoteEngine:
    return RemoteEngine(kind=kind, pid=pid, user=user, arguments=(kind,), listens=(f"127.0.0.1:{port}",))


MINE, ROOTS, OLLAMA = engine(7, "me"), engine(8, "root", port=9000), engine(9, "ollama", "ollama", 11434)


def chosen(*words: str, user: str = "me", all_engines: bool = False) -> tuple[list[int], list[int]]:
    """The processes that are kept, and those that are not."""
    facts = RemoteFacts(host="gpu", user=user, engines=(MINE, ROOTS, OLLAMA))
    kept, others = chosen_engines(facts, KeepProfile(engines=words, all_engines=all_engines))
    return [one.pid for one in kept], [one.pid for one in others]


def test_without_a_word_they_are_the_users_own_and_the_others_are_told() -> None:
    assert chosen() == ([7], [8, 9])
    assert chosen(all_engines=True) == ([7, 8, 9], [])


def test_one_is_named_by_process_port_or_kind() -> None:
    assert chosen("9000") == chosen("8") == ([8], [7, 9])
    assert chosen("vllm", "11434") == ([7, 8, 9], [])


@pytest.mark.parametrize("word", ["10", "sglang", "None", "$(id)"])
def test_a_word_that_means_none_is_refused_with_those_there_are(word: str) -> None:
    with pytest.raises(HostError) as failed:
        chosen(word)
    assert failed.value.reason is Reason.NOT_FOUND
    assert "ollama of ollama (process 9, port 11434)" in failed.value.problem.cause


def test_where_none_is_the_users_own_the_others_are_named_with_the_command() -> None:
    with pytest.raises(HostError) as failed:
        chosen(user="somebody")
    assert failed.value.reason is Reason.CONFLICT
    assert failed.value.problem.fix is not None
    assert failed.value.problem.fix.command == "sndr host profile gpu --keep --engine 7"
    with pytest.raises(HostError):
        chosen_engines(RemoteFacts(host="gpu", user="me"), KeepProfile())
