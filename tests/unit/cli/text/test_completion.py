"""Names of the host where a shell completes them; one from outside is never more than a word."""

from collections.abc import Callable

import pytest

from engine_host.cli.text import completion
from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.test_commands import ENGINE, engines

Ran = tuple[int, str, str]


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch, sndr: Callable[..., Ran]) -> Callable[..., list[str]]:
    """Return what may stand at the end of a line."""
    monkeypatch.setattr(completion, "_SECONDS", 60.0)

    def complete(line: str, shell: str = "bash") -> list[str]:
        monkeypatch.setenv("_SNDR_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        code, out, err = sndr()
        assert (code, err) == (0, "")
        return [text.partition(",")[2] for text in out.split()]

    return complete


def named(*names: str) -> tuple[int, object]:
    return engines(*({**ENGINE, "id": f"engine-{place}", "name": name} for place, name in enumerate(names)))


def test_engines_are_named_and_other_words_are_clicks(
    host: FakeHost, completed: Callable[..., list[str]]
) -> None:
    host.answers["GET /v1/engines"] = named("coder", "coder", "chat", "cröwd/7b:q4")
    assert completed("sndr stop c") == ["coder", "chat", "cröwd/7b:q4"]
    assert completed("sndr stop ch") == ["chat"]
    assert completed("sndr run --instead-of co") == ["coder"]
    assert "--instead-of" in completed("sndr run --ins")
    assert completed("sndr be") == ["bench"]


@pytest.mark.parametrize("name", ["$(reboot)", "a;reboot", "a b", "`x`", "-rf", "a\nb", "a,b", "", "'", "~x"])
def test_a_name_that_a_shell_would_read_is_left_out(
    host: FakeHost, completed: Callable[..., list[str]], name: str
) -> None:
    host.answers["GET /v1/engines"] = named(name, "coder")
    assert completed("sndr stop ") == ["coder"]


def test_nothing_is_said_where_the_host_answers_wrong_or_none_runs(
    host: FakeHost, completed: Callable[..., list[str]]
) -> None:
    host.lies = True
    host.answers["GET /v1/engines"] = (200, {"engines": 7})
    assert completed("sndr stop ") == []
    host.answers["GET /v1/engines"] = (500, {"error": {"reason": "internal", "message": "No."}})
    assert completed("sndr stop ") == []


def test_names_of_another_machine_are_never_this_ones(
    host: FakeHost, completed: Callable[..., list[str]]
) -> None:
    host.answers["GET /v1/engines"] = named("coder")
    gpu: dict[str, object] = {
        "name": "gpu",
        "destination": "me@gpu",
        "mode": "engine_host",
        "state": "disconnected",
    }
    gpu |= {"sentence": "Not connected.", "added_at": 1.0}
    host.answers["GET /v1/hosts/gpu"] = (200, gpu)
    host.answers["GET /v1/hosts"] = (200, {"seq": 0, "hosts": [gpu]})
    assert completed("sndr --host gpu stop ") == []
    assert completed("sndr --host ") == ["gpu"]
    assert completed("sndr host connect g") == ["gpu"]


def test_without_a_host_there_are_no_names(completed: Callable[..., list[str]], home: object) -> None:
    assert completed("sndr stop ") == []
