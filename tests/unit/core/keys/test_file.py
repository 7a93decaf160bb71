"""Keys are kept as hashes, and those of the plain file are taken over."""

import json
import stat
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.keys.file import KeyFile
from engine_host.core.keys.ring import KeyRing
from engine_host.protocol.endpoint.keys import Permission
from engine_host.protocol.errors import Reason
from tests.unit.full_disk import SmallDisk, small_disk

INFER = (Permission.INFER,)


def plain(home: Path, *lines: str) -> Path:
    """Write the plain file."""
    path = home / "api-keys"
    path.write_text("\n".join(lines), encoding="utf-8")
    path.chmod(0o600)
    return path


def known(file: KeyFile, key: str) -> str | None:
    """Return the name of the key that a request with this one has."""
    found = KeyRing(file.read()).find(key.encode())
    return found.name if found else None


def test_a_key_is_shown_once_and_kept_as_a_hash(home: Path) -> None:
    file = KeyFile(home)
    assert file.read() == ()
    made = file.create("laptop", INFER)
    other = file.create("robot", (Permission.ADMIN,))
    assert made.key != other.key
    assert made.key not in file.path.read_text()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert (known(file, made.key), known(file, other.key)) == ("laptop", "robot")
    assert known(file, made.key + "x") is None
    laptop, robot = file.read()
    assert (laptop.may(Permission.INFER), laptop.may(Permission.ADMIN)) == (True, False)
    assert (robot.may(Permission.INFER), robot.may(Permission.ADMIN)) == (True, True)
    with pytest.raises(HostError) as refused:
        file.create("laptop", INFER)
    assert refused.value.reason is Reason.CONFLICT


def test_a_key_is_revoked_by_its_name_or_its_id(home: Path) -> None:
    file = KeyFile(home)
    first, second = file.create("first", INFER), file.create("second", INFER)
    file.revoke("first", needed=True)
    assert (known(file, first.key), known(file, second.key)) == (None, "second")
    with pytest.raises(HostError, match="last key") as refused:
        file.revoke("second", needed=True)
    assert refused.value.reason is Reason.CONFLICT
    file.revoke(second.entry.id, needed=False)
    assert file.page().needed is False
    with pytest.raises(HostError) as missing:
        file.revoke("second", needed=False)
    assert missing.value.reason is Reason.NOT_FOUND


def test_the_plain_file_is_taken_over_and_named_until_it_is_gone(home: Path) -> None:
    path = plain(home, "a-key-of-version-0.1.0", "Größe")
    file = KeyFile(home)
    page = file.page()
    assert page.plain_file == str(path)
    assert [(key.name, key.plain_file, key.weak) for key in page.keys] == [
        ("api-keys-1", True, False),
        ("api-keys-2", True, True),
    ]
    assert Permission.ADMIN in page.keys[0].permissions, "it could do everything before"
    assert file.page() == page, "the second reading changes nothing"
    path.unlink()
    assert (known(file, "a-key-of-version-0.1.0"), file.page().plain_file) == ("api-keys-1", None)
    assert "version-0.1.0" not in file.path.read_text()


def test_while_the_plain_file_is_there_it_rules_its_keys(home: Path) -> None:
    file = KeyFile(home)
    plain(home, "one", "two")
    own = file.create("own", INFER)
    plain(home, "two", "three")
    assert [known(file, key) for key in ("one", "two", "three", own.key)] == [
        None,
        "api-keys-2",
        "api-keys-1",
        "own",
    ]
    plain(home)
    assert [key.name for key in file.read()] == ["own"]


def test_a_key_of_the_plain_file_that_was_revoked_does_not_come_back(home: Path) -> None:
    plain(home, "one", "two")
    file = KeyFile(home)
    file.read()
    file.revoke("api-keys-1", needed=True)
    assert (known(file, "one"), known(file, "two")) == (None, "api-keys-2")


def test_a_disk_without_room_takes_no_key_away(home: Path) -> None:
    with small_disk(home / "disk") as disk:
        check_a_full_disk(disk)


def check_a_full_disk(disk: SmallDisk) -> None:
    """Keys of the plain file hold although nothing can be written."""
    plain(disk.folder, "one")
    file = KeyFile(disk.folder)
    with disk.full():
        assert known(file, "one") == "api-keys-1"
        with pytest.raises(HostError) as refused:
            file.create("new", INFER)
    assert refused.value.reason is Reason.DISK_FULL
    assert not file.path.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff", b"[]", b"{}x", b'{"keys": 1}', b'{"format": 2}', b'{"keys": [{"id": "a"}]}',
        b"[" * 9999,
        b'{"keys": [{"id": "00000000", "name": "a\\nb", "permissions": [], "sha256": "' + b"0" * 64
        + b'", "created_at": 1}]}', b'{"more": 1}',
    ],
)  # fmt: skip
def test_a_damaged_file_is_no_open_door(home: Path, content: bytes) -> None:
    file = KeyFile(home)
    file.path.write_bytes(content)
    file.path.chmod(0o600)
    with pytest.raises(HostError) as refused:
        file.read()
    assert refused.value.reason is Reason.SETTING_INVALID
    assert file.path.read_bytes() == content


def test_a_file_that_others_may_write_is_not_used(home: Path) -> None:
    file = KeyFile(home)
    file.create("laptop", INFER)
    file.path.chmod(0o666)
    with pytest.raises(HostError, match="by others"):
        file.read()


def test_thousands_of_lines_are_refused(home: Path) -> None:
    plain(home, *(f"key-{number}" for number in range(1001)))
    with pytest.raises(HostError) as refused:
        KeyFile(home).read()
    assert refused.value.reason is Reason.CONFLICT


def test_the_form_on_the_disk_is_stable(home: Path) -> None:
    KeyFile(home).create("laptop", INFER)
    content = json.loads((home / "keys.json").read_text())
    assert content["format"] == 1
    assert set(content["keys"][0]) == {
        "id", "name", "permissions", "sha256", "created_at", "plain_file", "weak"
    }  # fmt: skip
