"""`sndr open`: the window in this process's place, and links that are none refused."""

import os

import pytest

from engine_host.cli import main
from engine_host.core.processes.own_programs import OwnProgram, command_of

Started = list[list[str]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    found: Started = []

    def note(_program: str, words: list[str]) -> None:
        found.append(words)

    monkeypatch.setattr(os, "execv", note)
    return found


@pytest.mark.parametrize(
    ("given", "handed"),
    [
        ([], []),
        (["sndr://page/launch?preset=a"], ["sndr://page/launch?preset=a"]),
        (["--another", "sndr://chat"], ["--another", "sndr://chat"]),
    ],
)
def test_the_window_takes_this_processs_place(started: Started, given: list[str], handed: list[str]) -> None:
    assert main(["open", *given]) == 0
    assert started == [[*command_of(OwnProgram.WINDOW), *handed]]


@pytest.mark.parametrize(
    "link", ["https://example.org", "--", "--engine-host", "/etc/passwd", "sndr:chat", ""]
)
def test_what_is_no_link_is_refused_here(
    started: Started, link: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["open", link, *(["--engine-host"] if link == "--" else [])])
    assert code == 2, capsys.readouterr()
    assert not started


def test_on_a_machine_without_the_window_it_says_so(
    started: Started, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert main(["open"]) == 4
    assert "not installed" in capsys.readouterr().err
    assert not started


def test_it_is_about_this_machine(started: Started, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--host", "gpu", "open"]) == 2
    assert "sndr://host/NAME" in capsys.readouterr().err
    assert not started
