"""The settings file: checked, changed whole or not at all, and never harmed."""

import os
import tomllib
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.keys.plain import read_api_keys
from engine_host.core.settings import SettingsFile
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import Layer
from engine_host.protocol.settings import MEANINGS
from tests.unit.full_disk import small_disk


@pytest.fixture
def path(home: Path) -> Path:
    return home / "config" / "settings.toml"


def written(path: Path, text: str | bytes) -> SettingsFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return SettingsFile(path)


def refused(settings: SettingsFile) -> HostError:
    before = settings.path.read_bytes()
    with pytest.raises(HostError) as raised:
        settings.load()
    assert settings.path.read_bytes() == before, "the file is left alone"
    assert raised.value.reason is Reason.SETTING_INVALID
    assert str(settings.path) in raised.value.problem.message
    return raised.value


def test_without_a_file_everything_is_a_default(path: Path) -> None:
    settings = SettingsFile(path)
    settings.load()
    assert settings.current.endpoint.port == 8020
    assert {setting.name for setting in settings.settings()} == set(MEANINGS), "each is told in a sentence"
    assert {setting.layer for setting in settings.settings()} == {Layer.ENGINE}
    assert not path.exists()


def test_says_which_layer_set_a_value_and_where(path: Path) -> None:
    settings = written(path, "[endpoint]\nport = 9000\n")
    settings.load()
    found = {setting.name: setting for setting in settings.settings()}
    assert found["endpoint.port"].value == 9000
    assert found["endpoint.port"].layer is Layer.USER
    assert found["endpoint.port"].why == str(path)
    assert found["endpoint.host"].layer is Layer.ENGINE


@pytest.mark.parametrize(
    "text", ["[endpoint\nport = 1", "port = = 3", b"\xff\xfe\x00", b'[endpoint]\nhost = "\xff"\n']
)
def test_a_damaged_file_is_named(path: Path, text: str | bytes) -> None:
    error = refused(written(path, text))
    assert error.problem.evidence["file"] == str(path)
    assert error.problem.fix is not None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[endpoint]\nport = 70000\n", "endpoint.port"),
        ('[endpoint]\nport = "many"\n', "endpoint.port"),
        ("[endpoint]\nprot = 8021\n", "endpoint.prot"),
        ("[enpoint]\nport = 8021\n", "enpoint"),
        ("endpoint = 3\n", "endpoint"),
        ('[engine]\nserver = "fastest"\n', "engine.server"),
        ("[models]\nfolders = [3]\n", "models.folders.0"),
    ],
)
def test_a_wrong_entry_is_named_with_its_file(path: Path, text: str, key: str) -> None:
    error = refused(written(path, text))
    assert error.problem.evidence["key"] == key
    assert key in error.problem.message
    assert error.problem.fix is not None


def test_an_unknown_key_lists_the_known_ones(path: Path) -> None:
    error = refused(written(path, "[endpoint]\nprot = 8021\n"))
    assert error.problem.fix is not None
    assert "endpoint.port" in error.problem.fix.text


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(HostError) as raised:
        SettingsFile(path).load()
    assert raised.value.reason is Reason.SETTING_INVALID


def test_a_change_is_saved_and_only_what_changed_is_told(path: Path) -> None:
    settings = SettingsFile(path)
    settings.load()
    changed = settings.change({"endpoint.port": 9001, "engine.keep": False, "models.folders": ["/m"]})
    assert set(changed) == {"endpoint.port", "models.folders"}
    again = SettingsFile(path)
    again.load()
    assert again.current == settings.current
    assert again.is_set("engine.keep"), "a value equal to its default may be set on purpose"


def test_settings_that_are_kept_elsewhere_are_changed_there(path: Path, home: Path) -> None:
    kept = home / "dotfiles" / "sndr.toml"
    kept.parent.mkdir()
    kept.write_text("# mine\n", encoding="utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(kept)
    settings = SettingsFile(path)
    settings.load()
    settings.change({"endpoint.port": 8123})
    assert path.is_symlink()
    assert kept.read_text(encoding="utf-8").startswith("# mine\n")
    assert "8123" in kept.read_text(encoding="utf-8")


def test_none_gives_the_default_back_and_leaves_no_empty_table(path: Path) -> None:
    settings = written(path, '[endpoint]\nport = 9000\n[host]\nlog_level = "debug"\n')
    settings.load()
    assert settings.change({"endpoint.port": None}) == ("endpoint.port",)
    assert settings.current.endpoint.port == 8020
    assert tomllib.loads(path.read_text(encoding="utf-8")) == {"host": {"log_level": "debug"}}
    assert settings.change({"endpoint.port": None}) == ()


@pytest.mark.parametrize("name", ["endpoint.prot", "nothing", "", ".", "endpoint", "endpoint.port.more"])
def test_a_change_of_something_unknown_changes_nothing(path: Path, name: str) -> None:
    settings = SettingsFile(path)
    settings.load()
    with pytest.raises(HostError) as raised:
        settings.change({"endpoint.host": "::1", name: 3})
    assert raised.value.reason is Reason.SETTING_INVALID
    assert settings.current.endpoint.host == "127.0.0.1"
    assert not path.exists()


def test_what_was_edited_by_hand_meanwhile_is_kept(path: Path) -> None:
    settings = SettingsFile(path)
    settings.load()
    written(path, "[engine]\nstreams = 3\n")
    settings.change({"endpoint.port": 9000})
    assert tomllib.loads(path.read_text(encoding="utf-8")) == {
        "engine": {"streams": 3},
        "endpoint": {"port": 9000},
    }


def test_a_file_damaged_meanwhile_is_not_overwritten(path: Path) -> None:
    settings = SettingsFile(path)
    settings.load()
    written(path, "[engine")
    with pytest.raises(HostError):
        settings.change({"endpoint.port": 9000})
    assert path.read_text(encoding="utf-8") == "[engine"
    assert settings.current.endpoint.port == 8020


def test_a_full_disk_changes_nothing(home: Path) -> None:
    with small_disk(home / "disk") as disk:
        settings = SettingsFile(disk.folder / "settings.toml")
        settings.load()
        settings.change({"endpoint.port": 9000})
        before = settings.path.read_bytes()
        with disk.full(), pytest.raises(HostError) as raised:
            settings.change({"models.folders": ["/" + "m" * 9000]})
        assert raised.value.reason is Reason.DISK_FULL
        assert settings.path.read_bytes() == before
        assert settings.current.models.folders == ()


def test_one_wrong_value_does_not_stop_another_from_being_mended(path: Path) -> None:
    settings = written(path, '[endpoint]\nport = "x"\nqueue_limit = -1\n')
    with pytest.raises(HostError, match=r"^endpoint\.port was saved, but .*queue_limit") as raised:
        settings.change({"endpoint.port": 8030})
    assert raised.value.problem.fix is not None
    assert raised.value.problem.fix.command == "sndr settings unset endpoint.queue_limit"
    assert settings.change({"endpoint.queue_limit": None}) == ("endpoint.port",)
    assert settings.current.endpoint.port == 8030


def test_a_refused_value_is_not_said_to_be_in_the_file(path: Path) -> None:
    settings = SettingsFile(path)
    with pytest.raises(HostError, match=r"endpoint\.port cannot be 99999: .*Nothing was changed") as raised:
        settings.change({"endpoint.port": 99999})
    assert raised.value.problem.fix is not None
    assert raised.value.problem.fix.command == "sndr settings unset endpoint.port"
    with pytest.raises(HostError, match="list, such as"):
        settings.change({"models.folders": 5})
    assert not path.exists()


def test_the_network_may_reach_the_endpoint_only_with_a_key(path: Path) -> None:
    settings = SettingsFile(path)
    with pytest.raises(HostError, match="anybody in the network") as raised:
        settings.change({"endpoint.host": "0.0.0.0"})
    assert raised.value.problem.fix is not None
    assert raised.value.problem.fix.command == "sndr keys create NAME"
    keys = path.parent / "api-keys"
    keys.parent.mkdir(parents=True, exist_ok=True)
    keys.write_text("secret\n", encoding="utf-8")
    keys.chmod(0o600)
    assert settings.change({"endpoint.host": "0.0.0.0"}) == ("endpoint.host",)


COMMENTED = """\
# My machine in the cellar.
[endpoint]
port = 9000  # 8020 is taken

[models]
folders = [
    "/data/a",  # the fast disk
    "/data/b",
]

[engine]
# Two people use it.
streams = 2
"""


def test_comments_and_order_survive_every_change(path: Path) -> None:
    settings = written(path, COMMENTED)
    settings.load()
    settings.change({"endpoint.port": 9001, "host.log_level": "debug"})
    settings.change({"engine.streams": None, "engine.keep": True})
    assert path.read_text() == (
        COMMENTED.replace("9000", "9001").replace("streams = 2", "keep = true")
        + '\n[host]\nlog_level = "debug"\n'
    )
    settings.change({"engine.keep": None, "host.log_level": None})
    assert "# Two people use it." in path.read_text()
    assert "[host]" not in path.read_text()
    settings.load()
    assert settings.current.models.folders == ("/data/a", "/data/b")
    assert settings.current.engine.streams == 8


@pytest.mark.parametrize(
    "text",
    [
        "engine.streams = 2\nengine.threads = 3\n",
        "engine = {streams = 2, threads = 3}\n",
        "[engine]\r\nstreams = 2\r\nthreads = 3\r\n",
        '["engine"]\n"streams" = 2\nthreads = 0x3\n',
    ],
)
def test_every_way_to_write_a_group_can_be_changed(path: Path, text: str) -> None:
    settings = written(path, text)
    settings.load()
    assert settings.change({"engine.streams": 5, "endpoint.port": 9000}) == (
        "endpoint.port",
        "engine.streams",
    )
    again = SettingsFile(path)
    again.load()
    assert (again.current.engine.streams, again.current.engine.threads) == (5, 3)
    assert again.current.endpoint.port == 9000
    again.change({"engine.streams": None, "engine.threads": None, "endpoint.port": None})
    again.load()
    assert not any(again.is_set(name) for name in ("engine.streams", "engine.threads", "endpoint.port"))


@pytest.mark.parametrize("value", [[None], {"a": None}, [[None]], [{"a": [None]}]])
def test_a_value_without_a_form_in_the_file_is_refused(path: Path, value: object) -> None:
    settings = written(path, "[endpoint]\nport = 9000\n")
    settings.load()
    with pytest.raises(HostError) as caught:
        settings.change({"models.folders": value})
    assert caught.value.reason is Reason.SETTING_INVALID
    assert path.read_text() == "[endpoint]\nport = 9000\n"


def test_what_is_no_file_of_settings_is_not_waited_for(path: Path) -> None:
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    os.mkfifo(path.parent / "api-keys")
    with pytest.raises(HostError, match="no regular file"):
        SettingsFile(path).load()
    with pytest.raises(HostError):
        read_api_keys(path.parent)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000, "a = " + "9" * 5000, "x" * (2 << 20)], ids=["deep", "digits", "long"]
)
def test_a_file_of_nonsense_is_a_clear_error(path: Path, text: str) -> None:
    assert len(str(refused(written(path, text)))) < 3000


def test_a_wrong_value_of_any_length_has_a_short_error(path: Path) -> None:
    error = refused(written(path, f'[endpoint]\nport = "{"x" * 100_000}"\n'))
    assert len(error.problem.sentence()) < 5000


def test_a_file_that_is_wrong_stops_nothing_and_is_left_alone(path: Path) -> None:
    text = '[engine]\nstreams = 3\nthreads = "all"\n\n[host]\nlog_level = "loud"\n[what]\nis = 1\n'
    settings = written(path, text)
    settings.load_what_holds()
    assert settings.problem is not None
    assert settings.problem.evidence["line"] == 3
    assert settings.problem.evidence["text"] == 'threads = "all"'
    assert (settings.current.engine.streams, settings.current.engine.threads) == (3, None)
    assert settings.current.host.log_level == "info"
    assert path.read_text(encoding="utf-8") == text
    assert settings.is_set("engine.streams")
    assert not settings.is_set("engine.threads")


def test_a_wrong_endpoint_is_served_no_wider_than_by_default(path: Path) -> None:
    settings = written(path, '[endpoint]\nhost = "0.0.0.0"\ntls_key = 3\n[engine]\nstreams = 2\n')
    settings.load_what_holds()
    assert settings.current.endpoint.host == "127.0.0.1"
    assert settings.current.engine.streams == 2
    settings = written(path, '[endpoint]\nhost = "0.0.0.0"\nport = = 3\n')
    settings.load_what_holds()
    assert settings.current.endpoint.host == "127.0.0.1"


def test_a_repair_shows_what_it_changes_and_keeps_what_was_there(path: Path) -> None:
    text = "# mine\n[engine]\nstreams = 3\nthreads = 0\nwhat is this\n"
    settings = written(path, text)
    settings.load_what_holds()
    seen = settings.preview()
    assert seen.problem is not None
    assert "-threads = 0" in seen.diff
    assert path.read_text(encoding="utf-8") == text
    assert settings.mend("repair") == ("engine.streams",)
    assert settings.problem is None
    assert path.read_text(encoding="utf-8") == "# mine\n[engine]\nstreams = 3\n# not read: what is this\n"
    (kept,) = path.parent.glob("settings.toml.before-repair-*")
    assert kept.read_text(encoding="utf-8") == text
    assert settings.mend("repair") == ()
    assert settings.mend("set_aside") == (), "a file that is right is never touched"
    assert sorted(one.name for one in path.parent.iterdir()) == sorted([path.name, kept.name])


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"= =\n" * 99])
def test_what_no_repair_mends_can_be_set_aside(path: Path, text: bytes) -> None:
    settings = written(path, text)
    settings.load_what_holds()
    assert settings.preview().diff == ""
    with pytest.raises(HostError, match="cannot be repaired by itself"):
        settings.mend("repair")
    assert path.read_bytes() == text
    settings.mend("set_aside")
    assert settings.problem is None
    assert [one.read_bytes() for one in path.parent.iterdir()] == [text]


def test_a_file_that_was_edited_is_read_again(path: Path) -> None:
    settings = written(path, "[engine]\nstreams = 0\n")
    settings.load_what_holds()
    path.write_text("[engine]\nstreams = 5\n", encoding="utf-8")
    assert settings.mend("read_again") == ("engine.streams",)
    assert settings.problem is None
