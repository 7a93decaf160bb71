"""Start at login: what is written for the desktop and for systemd, and that nobody else's file is touched."""

import shlex
from pathlib import Path

import pytest

from engine_host.client.at_login import host_unit
from engine_host.client.at_login.host_unit import read_unit, remove_unit, unit_text, write_unit
from engine_host.client.at_login.window_entry import entry_path, read_entry, remove_entry, write_entry
from engine_host.client.at_login.words import exec_value, unit_program, unit_word
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "relative"}


def exec_line(given: dict[str, str]) -> str:
    lines = entry_path(given).read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("Exec=") for line in lines if line.startswith("Exec="))


def test_the_window_is_written_changed_and_taken_away(given: dict[str, str], tmp_path: Path) -> None:
    assert entry_path(given) == tmp_path / ".config" / "autostart" / "sndr.desktop"
    assert not read_entry(given).on
    assert not remove_entry(given).on
    assert write_entry("", given).on
    assert exec_line(given).endswith('"--at-login"')
    made = write_entry("demo-llamacpp", {**given, "SNDR_HOME": "/h m"})
    assert (made.on, made.preset, made.foreign) == (True, "demo-llamacpp", False)
    assert exec_line(given).startswith('"env" "SNDR_HOME=/h m" ')
    assert shlex.split(exec_line(given))[-2:] == ["--at-login", "--start-preset=demo-llamacpp"]
    path = entry_path(given)
    path.write_text(path.read_text(encoding="utf-8") + "Hidden=true\n", encoding="utf-8")
    assert not read_entry(given).on, "a desktop's own settings switch it off so"
    assert not remove_entry(given).on
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("content", [b"[Desktop Entry]\nExec=/mine\n", b"\xff\xfe", b""])
def test_an_entry_of_somebody_else_is_left_alone(given: dict[str, str], content: bytes) -> None:
    path = entry_path(given)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for change in (write_entry, lambda _preset, env: remove_entry(env)):
        with pytest.raises(HostError) as raised:
            change("", given)
        assert raised.value.reason is Reason.CONFLICT
    assert path.read_bytes() == content
    with pytest.raises(HostError, match="is no id of a preset"):
        write_entry('x" ; rm -rf "', given)


def test_words_are_quoted_for_who_reads_them() -> None:
    assert exec_value(['/a b/$x`"\\%', "-m"]) == '"/a b/\\\\$x\\\\`\\\\"\\\\\\\\%%" "-m"'
    assert unit_program("/a $b/%x") == '"/a $b/%%x"'
    assert unit_word('$HOME "x"') == '"$$HOME \\"x\\""'


def test_the_host_is_a_service_where_systemd_manages_it(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(host_unit, "_systemctl", lambda *words: asked.append(words))
    assert '"serve"' in unit_text({**given, "SNDR_HOME": "/h"})
    assert 'Environment="SNDR_HOME=/h"' in unit_text({**given, "SNDR_HOME": "/h"})
    unit = write_unit(start=False, given=given)
    assert asked == [("daemon-reload",), ("enable", host_unit.UNIT)]
    assert not unit.on, "systemd, which is none here, makes the link"
    (unit.path.parent / "default.target.wants").mkdir()
    (unit.path.parent / "default.target.wants" / host_unit.UNIT).symlink_to(unit.path)
    assert read_unit(given).on
    remove_unit(given)
    assert not unit.path.exists()
    unit.path.write_text("[Service]\n", encoding="utf-8")
    with pytest.raises(HostError, match="was not written by this program"):
        write_unit(start=True, given=given)


def test_without_systemd_nothing_is_left(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_words: str) -> None:
        raise HostError(Reason.UNSUPPORTED, "no systemd")

    monkeypatch.setattr(host_unit, "_systemctl", none)
    with pytest.raises(HostError, match="no systemd"):
        write_unit(start=True, given=given)
    assert not read_unit(given).path.exists()
