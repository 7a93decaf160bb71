"""Services that outlive a logout: who sets that, who needs it, who ends it; FAKE systemctl and loginctl."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from engine_host.remote.install.there import removal
from engine_host.remote.install.there.places import RECORD, Places, read, write
from engine_host.remote.services.there import running

_PROGRAM = """#!{python}
import pathlib, sys
base = pathlib.Path(__file__).parent
words = sys.argv[1:]
with open(base / "calls", "a") as calls:
    print(pathlib.Path(sys.argv[0]).name, *words, file=calls)
flag = base / "lingers"
if words[0] == "show-user":
    print("yes" if flag.exists() else "no")
elif words[0] == "enable-linger":
    flag.touch()
elif words[0] == "disable-linger":
    flag.unlink()
elif words[1:2] == ["show"]:
    name = words[-1]
    print(f"Id={{name}}\\nLoadState=loaded\\n" + (base / "state").read_text())
"""


class User:
    """A user of a machine with FAKE managers."""

    def __init__(self, home: Path, programs: Path) -> None:
        self.home = home
        self.programs = programs
        self.is_so("inactive", "disabled")

    def is_so(self, active: str, enabled: str) -> None:
        (self.programs / "state").write_text(f"ActiveState={active}\nUnitFileState={enabled}\n", "utf-8")

    def lingers(self) -> bool:
        return (self.programs / "lingers").exists()

    def calls(self) -> str:
        path = self.programs / "calls"
        said = path.read_text("utf-8") if path.exists() else ""
        path.unlink(missing_ok=True)
        return said

    def begin(self, name: str, text: str = "1", enable: bool = True) -> dict[str, Any]:
        """Write and start a service."""
        given = {"name": name, "manager": "systemd", "files": files(name, text), "replace": False}
        made = running.put(given)["made"]
        return {**given, "made": made, "facts": running.start({**given, "start": True, "enable": enable})}

    def install(self, name: str, text: str = "1") -> None:
        """Install one, to the end."""
        given = self.begin(name, text)
        running.settle({**given, "facts": {**given["facts"], "manager": "systemd"}})

    def remove(self, name: str) -> None:
        """Remove one."""
        running.remove({"name": name, "manager": "systemd", "replace": False})


def files(name: str, text: str) -> list[dict[str, Any]]:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return [{"name": f"{name}.service", "text": text, "place": "units", "sha256": sha256}]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """A user with a home, whose services end with its last session."""
    home, programs = tmp_path / "own", tmp_path / "bin"
    home.mkdir()
    programs.mkdir()
    for name in ("systemctl", "loginctl"):
        (programs / name).write_text(_PROGRAM.format(python=sys.executable), "utf-8")
        (programs / name).chmod(0o755)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "SNDR_HOME", "SNDR_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return User(home, programs)


def test_lingering_stays_for_another_service_and_ends_with_the_last(user: User) -> None:
    user.install("sndr-a")
    user.install("sndr-b")
    user.install("sndr-a", "an update does not forget who set it")
    user.remove("sndr-a")
    assert user.lingers(), "the other one needs it"
    user.remove("sndr-b")
    assert not user.lingers()
    assert not list(user.home.rglob("*.service"))


def test_lingering_stays_for_a_unit_of_the_user(user: User) -> None:
    user.install("sndr-a")
    wants = user.home / ".config/systemd/user/default.target.wants"
    wants.mkdir()
    (wants / "mine.service").symlink_to("../mine.service")
    user.remove("sndr-a")
    assert user.lingers()


def test_lingering_goes_over_to_the_engine_host_and_back(user: User) -> None:
    user.install("sndr-a")
    places = Places()
    Path(places.root).mkdir(parents=True)
    Path(places.unit).write_text("[Unit]", "utf-8")
    write(f"{places.root}/{RECORD}", {"made": [places.data, places.cache], "set_lingering": False})
    Path(places.data, "sndr.sqlite").write_text("", "utf-8")
    user.install("sndr-b")
    user.remove("sndr-a")
    user.remove("sndr-b")
    assert user.lingers(), "the engine host needs it"
    assert (read(f"{places.root}/{RECORD}") or {})["set_lingering"] is True
    user.install("sndr-c")
    (user.home / ".cache/sndr/deploy/sndr-c").mkdir(parents=True)
    said = removal.remove(places)
    assert user.lingers(), "the service needs it"
    stays = [f"{places.data}/deploy", f"{places.cache}/deploy"]
    assert said["kept"] == stays, "a service goes on without the host, and its files stay"
    assert Path(places.data, "deploy/sndr-c").is_dir()
    assert not Path(places.data, "sndr.sqlite").exists()
    user.remove("sndr-c")
    assert not user.lingers()
    assert not Path(places.data).exists(), "the last one takes the folders of the host along"


@pytest.mark.parametrize(
    ("manager", "uid", "lingers"), [("podman", 1000, True), ("podman", 0, False), ("docker", 1000, False)]
)
def test_a_container_of_the_user_outlives_its_last_session(
    user: User, monkeypatch: pytest.MonkeyPatch, manager: str, uid: int, lingers: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    (user.programs / manager).write_text("#!/bin/sh\n", "utf-8")
    (user.programs / manager).chmod(0o755)
    script = {"name": "start.sh", "text": "true\n", "place": "folder"}
    script["sha256"] = hashlib.sha256(script["text"].encode()).hexdigest()
    given = {"name": "sndr-a", "manager": manager, "files": [script], "replace": False}
    running.put(given)
    started = running.start({**given, "start": True, "enable": True})
    assert (started["lingering"], user.lingers()) == (lingers, lingers)
    running.undo(given)
    assert not user.lingers()


def test_a_first_install_that_fails_ends_the_lingering_that_it_set(user: User) -> None:
    given = user.begin("sndr-a")
    assert user.lingers()
    assert running.undo(given)["first"] is True
    assert not user.lingers()
    assert not list(user.home.rglob("*.service"))


@pytest.mark.parametrize(
    ("active", "enabled", "words"),
    [
        ("active", "disabled", ["disable", "restart"]),
        ("active", "enabled", ["enable", "restart"]),
        ("inactive", "enabled", ["enable"]),
        ("inactive", "disabled", []),
    ],
)
def test_what_was_before_is_enabled_and_runs_as_it_did(
    user: User, active: str, enabled: str, words: list[str]
) -> None:
    user.install("sndr-a")
    user.is_so(active, enabled)
    given = user.begin("sndr-a", "2", enable=enabled == "disabled")
    user.calls()
    running.undo(given)
    said = [line.split()[2] for line in user.calls().splitlines() if line.startswith("systemctl")]
    began = said[said.index("daemon-reload") :]
    assert [one for one in began if one in ("enable", "disable", "restart")] == words
    assert user.lingers(), "it was set before"
