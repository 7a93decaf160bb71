"""Plans of installs: what a machine says of itself decides, and cannot say more than that."""

import ast
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.paths import Folders
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.install import InstallOnHost, RemoteChange
from engine_host.remote.install import machine
from engine_host.remote.install.answers import Probed
from engine_host.remote.install.own_wheel import LOCK, LocalFile, small_package
from engine_host.remote.install.packages import Platform, platform_of
from engine_host.remote.install.plan import decide, going_back, plain, removal
from engine_host.remote.install.there import places, probing, service
from engine_host.remote.install.unit import unit_of

WHEEL = LocalFile(Path("sndr_control_center-0.2.0-py3-none-any.whl"), 30 << 20, "ab" * 32)


RELEASE = WHEEL.release


def said(**changes: Any) -> Probed:
    """The answer of a machine on which nothing stands in the way."""
    python = {
        "path": "/usr/bin/python3.12",
        "version": [3, 12, 3],
        "ensurepip": True,
        "pip": True,
        "venv": True,
    }
    plain = {
        "user": "u",
        "machine": "x86_64",
        "libc": ["glibc", "2.39"],
        "pythons": [python],
        "root": "/users/u/.local/share/sndr/host",
        "unit": "/users/u/.config/systemd/user/sndr-host.service",
        "environment": {},
        "free": 100 << 30,
        "gpus": [{"name": "GPU", "driver": "580", "mebibytes": "24576"}],
        "index": {"reachable": True, "said": ""},
        "systemd": True,
        "lingers": True,
        "record": None,
        "current": None,
        "previous": None,
        "releases": [],
        "running": None,
        "engines": [],
        "own_data": [],
        **changes,
    }
    return Probed.model_validate(plain)


def findings(asked: InstallOnHost | None = None, **changes: Any) -> list[str]:
    plan = decide("gpu", asked or InstallOnHost(), said(**changes), WHEEL).plan
    return [one.id for one in plan.findings]


def test_a_machine_with_all_that_is_needed_gets_the_packages_from_its_index() -> None:
    decided = decide("gpu", InstallOnHost(), said(), WHEEL)
    assert (decided.plan.packages, decided.plan.service, decided.from_here) == ("index", "systemd", False)
    assert decided.plan.findings == ()
    unit = next(one for one in decided.plan.changes if one.what.endswith("sndr-host.service") and one.text)
    assert "ExecStart=/users/u/.local/share/sndr/host/current/bin/python" in unit.text


OLD = {"path": "/usr/bin/python3", "version": [3, 10, 12], "ensurepip": True, "pip": True, "venv": True}
BARE = {"path": "/usr/bin/python3.11", "version": [3, 11, 2], "ensurepip": False, "pip": False, "venv": True}


def unwritable(why: str) -> dict[str, str]:
    return {"path": f"/users/u/{why}", "why": why, "variable": "XDG_CONFIG_HOME"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"pythons": []}, ["remote.no-python"]),
        ({"pythons": [OLD]}, ["remote.no-python"]),
        ({"damaged": {RELEASE: "it is"}, "free": 1}, ["remote.disk", "remote.damaged"]),
        # The distribution there was upgraded, and its Python is gone.
        ({"damaged": {"0.2.0-a": "its Python"}, "current": "0.2.0-a"}, ["remote.damaged"]),
        ({"current": RELEASE, "releases": [RELEASE], "free": 1, "silent": True}, ["remote.silent"]),
        ({"pythons": [OLD, BARE]}, ["remote.packages-from-here"]),
        ({"index": {"reachable": False, "said": "no route"}}, ["remote.packages-from-here"]),
        ({"index": {"reachable": False, "said": ""}, "libc": ["", ""]}, ["remote.no-platform"]),
        ({"index": {"reachable": False, "said": ""}, "machine": "riscv64"}, ["remote.no-platform"]),
        ({"free": 10 << 20}, ["remote.disk"]),
        ({"noexec": True}, ["remote.noexec"]),
        ({"unwritable": [unwritable("read-only")]}, ["remote.read-only"]),
        (
            {"unwritable": [unwritable("not-theirs"), unwritable("no-folder")]},
            ["remote.not-theirs", "remote.no-folder"],
        ),
        ({"gpus": []}, ["remote.no-gpu"]),
        ({"lacks_openmp": True}, ["remote.no-openmp"]),
        ({"systemd": False}, ["remote.plain"]),
        ({"running": {"pid": 7, "argv": ["/opt/x/python"], "ours": False}}, ["remote.other-host"]),
        ({"engines": [{"name": "a", "keep": False}, {"name": "b", "keep": True}]}, ["remote.engines-end"]),
    ],
)
def test_what_stands_in_the_way_is_said(changes: dict[str, Any], expected: list[str]) -> None:
    assert findings(**changes) == expected


def test_offline_sends_the_packages_and_says_nothing_of_it() -> None:
    decided = decide("gpu", InstallOnHost(offline=True), said(), WHEEL)
    assert decided.from_here
    assert decided.platform == Platform((3, 12), "x86_64-manylinux_2_39")
    assert decided.plan.findings == ()


@pytest.mark.parametrize(
    ("libc", "tag"),
    [
        (("glibc", "2.35"), "x86_64-manylinux_2_35"),
        (("glibc", "2.99"), "x86_64-manylinux_2_40"),
        (("glibc", "2.20"), "x86_64-manylinux_2_17"),
        (("glibc", "2.5"), None),
        (("musl", "1.2"), None),
        (("glibc", "$(reboot)"), None),
        (("", ""), None),
    ],
)
def test_packages_are_for_the_c_library_that_is_there(libc: tuple[str, str], tag: str | None) -> None:
    found = platform_of((3, 11), "x86_64", libc)
    assert (found.tag if found else None) == tag


def test_an_update_names_what_it_changes_and_what_it_clears_away() -> None:
    changes = decide(
        "gpu", InstallOnHost(), said(current="0.1-a", releases=["0.0-z", "0.1-a"]), WHEEL
    ).plan.changes
    link = next(one for one in changes if "current ->" in one.what)
    assert (link.kind, link.note) == (RemoteChange.CHANGE, "was 0.1-a")
    removed = [one.what for one in changes if one.kind is RemoteChange.REMOVE]
    assert removed == ["/users/u/.local/share/sndr/host/0.0-z"]


def test_a_removal_keeps_what_was_there_before() -> None:
    own = ["/users/u/.config/sndr", "/users/u/.cache/sndr"]
    record = {"made": ["/users/u/.cache/sndr"], "service": "systemd", "set_lingering": True}
    changes = removal("gpu", said(record=record, own_data=own, current="0.1-a")).changes
    assert {one.what: one.kind for one in changes if one.what in own} == {
        own[0]: RemoteChange.KEEP,
        own[1]: RemoteChange.REMOVE,
    }
    assert any(one.what == "loginctl disable-linger" for one in changes)


def test_a_removal_leaves_what_services_installed_and_names_the_command() -> None:
    data = "/users/u/.local/share/sndr"
    record = {"made": [data], "service": "systemd", "set_lingering": True}
    services = [{"name": "sndr-a", "manager": "podman"}, {"name": "sndr-b", "manager": "systemd"}]
    plan = removal("gpu", said(record=record, own_data=[data], staying=[f"{data}/deploy"], services=services))
    kept = [one.what for one in plan.changes if one.kind is RemoteChange.KEEP]
    assert kept == [f"{data}/deploy"]
    assert not [one for one in plan.changes if one.kind is RemoteChange.REMOVE and one.what == data]
    assert not [one for one in plan.changes if "linger" in one.what], "they still need it"
    (told,) = [one for one in plan.findings if one.id == "remote.services-stay"]
    assert "sndr-a" in told.message
    assert "sndr-b" in told.message
    assert told.fix is not None
    assert told.fix.command == "sndr host container remove gpu sndr-a"


def test_a_removal_names_each_model_with_its_size() -> None:
    data = "/users/u/.local/share/sndr"
    models = [{"path": f"{data}/models/large", "size": 312 << 20}, {"path": "/elsewhere/a/b", "size": 1}]
    for made, expected in (([data], [(f"{data}/models/large", 312 << 20)]), ([], [])):
        plan = removal("gpu", said(record={"made": made}, own_data=[data], models=models))
        named = [
            (one.what, one.size)
            for one in plan.changes
            if one.kind is RemoteChange.REMOVE and one.size is not None
        ]
        assert named == expected


def test_models_there_are_found_with_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "w").write_bytes(b"12345")
    (tmp_path / "one.gguf").write_bytes(b"123")
    (tmp_path / ".part").write_bytes(b"1")
    (tmp_path / "gone").symlink_to("/nowhere")
    assert {one["path"]: one["size"] for one in probing._models(str(tmp_path))} == {
        str(tmp_path / "a"): 5,
        str(tmp_path / "one.gguf"): 3,
        str(tmp_path / "gone"): len("/nowhere"),
    }
    assert probing._models(str(tmp_path / "none")) == []


def test_a_removal_names_kept_engines_and_the_host_that_stops_it() -> None:
    engines = [{"name": "a", "keep": False}, {"name": "b", "keep": True}]
    (one,) = removal("gpu", said(engines=engines)).findings
    assert (one.id, "a, b" in one.message) == ("remote.engines-removed", True)
    other = {"pid": 7, "argv": ["/opt/x/python", "-P", "-m", "engine_host", "serve", "--port"], "ours": False}
    (one,) = removal("gpu", said(running=other)).findings
    assert (one.id, one.severity) == ("remote.other-host", Severity.ERROR)
    assert "-m engine_host serve)" in one.message, "its Python alone would not say what it is"


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        ({"systemd": True, "lingers": False}, "sudo loginctl enable-linger u"),
        ({"systemd": False, "lingers": None}, "sndr host update gpu"),
        ({"systemd": True, "lingers": False, "user": "root"}, "sndr host update gpu"),
    ],
)
def test_only_what_can_help_there_is_advised(changes: dict[str, Any], command: str) -> None:
    found = plain("gpu", said(**changes), "it is so")
    assert found.fix is not None
    assert found.fix.command == command


def test_going_back_is_a_diff_too_and_names_what_ends() -> None:
    engines = [{"name": "a", "keep": False}]
    plan = going_back("gpu", said(current="0.2-b", previous="0.1-a", engines=engines), "0.1-a")
    assert (plan.before, plan.release) == ("0.2-b", "0.1-a")
    assert "current -> 0.1-a" in plan.changes[0].what
    assert [one.id for one in plan.findings] == ["remote.engines-end"]
    assert plan.changes[-1].what == "systemctl --user restart sndr-host.service"


def test_hostile_paths_stay_one_word_of_the_unit() -> None:
    unit = unit_of("/home/a b%n$HOME\"'", {"SNDR_HOME": "/x y\\z%h"})
    (start,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    assert start == 'ExecStart="/home/a b%%n$HOME\\"\'/current/bin/python" \\'
    assert 'Environment="SNDR_HOME=/x y\\\\z%%h"' in unit


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SNDR_HOME": "/srv/sndr"},
        {"SNDR_HOME": "~/sndr", "SNDR_CACHE": "/big/cache"},
        {"XDG_DATA_HOME": "/data", "XDG_CONFIG_HOME": "/etc/x", "XDG_CACHE_HOME": ""},
    ],
)
def test_the_folders_there_are_those_of_the_host(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SNDR_HOME", "SNDR_CACHE", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    own, host = places.Places(), Folders.resolve()
    assert (own.config, own.data, own.cache) == (str(host.config), str(host.data), str(host.cache))


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\0b", ".hidden", "a\\b"])
def test_a_release_is_no_path(name: str) -> None:
    with pytest.raises(places.Failed):
        places.Places().release(name)


def test_what_runs_there_is_for_older_pythons_too() -> None:
    folder = Path(str(service.__file__)).parent
    sent = {f"{name.rpartition('.')[2]}.py" for name in machine.INSTALL.modules}
    assert sent == {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    for path in folder.glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_one_package_of_the_lock_tells_whether_an_index_answers() -> None:
    text = small_package()
    assert text.startswith("h11==")
    assert "--hash=sha256:" in text
    assert text in LOCK.read_text(encoding="utf-8")


def test_reasons_of_that_machine_are_reasons_here() -> None:
    assert set(machine._REASONS.values()) <= set(Reason)
