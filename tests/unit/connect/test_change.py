"""A client's files written and put back: exactly, or not at all."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.connect import change
from engine_host.connect.clients.table import client_named
from engine_host.connect.facts import Facts
from engine_host.connect.formats.text import Format
from engine_host.connect.found import entry_of
from engine_host.connect.records import Records
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.connect import ConnectionState
from engine_host.protocol.errors import Reason
from tests.unit.connect.samples import FACTS, URL, machine

CODEX = client_named("codex")
AIDER = client_named("aider")
BEFORE = '# mine\nmodel = "gpt" # the best\r\n[a]\nb = 1'


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "data")


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """A person's home with Codex's settings in it."""
    file = tmp_path / "home" / ".codex" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_bytes(BEFORE.encode())
    file.chmod(0o640)
    return tmp_path / "home"


def refused(person: Path) -> HostError:
    """The refusal of a write; nothing is different afterwards."""
    with pytest.raises(HostError) as caught:
        change.propose(CODEX, machine(person), FACTS, Records(person))
    assert entry_of(CODEX, machine(person), Records(person), URL, FACTS).state is ConnectionState.UNREADABLE
    return caught.value


def test_written_and_put_back_byte_for_byte(person: Path, records: Records) -> None:
    file = person / ".codex" / "config.toml"
    proposed = change.propose(CODEX, machine(person), FACTS, records)
    assert file.read_bytes() == BEFORE.encode(), "a proposal changes nothing"
    done = change.write(proposed, records)
    assert done.files[0].backup == f"{file}.sndr-backup"
    assert (file.parent / "config.toml.sndr-backup").read_bytes() == BEFORE.encode()
    assert b"# the best" in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o640
    assert entry_of(CODEX, machine(person), records, URL, FACTS).state is ConnectionState.CONNECTED
    assert change.propose(CODEX, machine(person), FACTS, records).files == ()
    assert change.undo(CODEX, records).done
    assert file.read_bytes() == BEFORE.encode()
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(file.parent) == ["config.toml"]
    with pytest.raises(HostError) as caught:
        change.undo(CODEX, records)
    assert caught.value.reason is Reason.NOT_FOUND


def test_new_files_and_folders_go_again(tmp_path: Path, records: Records) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for client in (AIDER, client_named("opencode")):
        change.write(change.propose(client, machine(home), FACTS, records), records)
    assert len(list(home.rglob("*"))) == 5
    for client in (AIDER, client_named("opencode")):
        change.undo(client, records)
    assert list(home.rglob("*")) == []


def test_a_second_write_keeps_the_first_copy(person: Path, records: Records) -> None:
    file = person / ".codex" / "config.toml"
    change.write(change.propose(CODEX, machine(person), FACTS, records), records)
    longer = FACTS.__class__(URL, "other", 9, key_needed=True)
    assert entry_of(CODEX, machine(person), records, URL, longer).state is ConnectionState.OUTDATED
    change.write(change.propose(CODEX, machine(person), longer, records), records)
    assert sorted(os.listdir(file.parent)) == ["config.toml", "config.toml.sndr-backup"]
    change.undo(CODEX, records)
    assert file.read_bytes() == BEFORE.encode()


@pytest.mark.parametrize("name", ["claude", "aider", "codex", "opencode"])
@pytest.mark.parametrize("own", [b"", b'{"mine": {"b": 1}}'])
def test_a_second_write_keeps_nothing_of_the_first(
    tmp_path: Path, records: Records, name: str, own: bytes
) -> None:
    client = client_named(name)
    keyed = replace(FACTS, key_needed=True)

    def written(facts: Facts, *, home: Path, records: Records) -> list[bytes]:
        change.write(change.propose(client, machine(home), facts, records), records)
        return [config.path(machine(home)).read_bytes() for config in client.files]

    def fresh(facts: Facts, name: str) -> list[bytes]:
        return written(facts, home=home(name), records=Records(tmp_path / f"data {name}"))

    def home(name: str) -> Path:
        made = tmp_path / name
        for config in client.files if own and client.files[0].format is Format.JSON else ():
            config.path(machine(made)).parent.mkdir(parents=True, exist_ok=True)
            config.path(machine(made)).write_bytes(own)
        return made

    person = home("person")
    without, with_key = fresh(FACTS, "one"), fresh(keyed, "two")
    assert without != with_key
    for facts, wanted in ((FACTS, without), (keyed, with_key), (FACTS, without)):
        if records.exists(name):
            entry = entry_of(client, machine(person), records, URL, facts)
            assert entry.state is ConnectionState.OUTDATED
        assert written(facts, home=person, records=records) == wanted
    change.undo(client, records)
    assert [path.read_bytes() for path in person.rglob("*") if path.is_file()] == (
        [own] * len(client.files) if own and client.files[0].format is Format.JSON else []
    )


def test_an_undo_that_fails_half_way_is_undone_again(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [config.path(machine(tmp_path)) for config in AIDER.files]
    assert len(files) == 2
    for file, content in zip(files, (b"a: 1\n", b"{}\n"), strict=True):
        file.write_bytes(content)
    change.write(change.propose(AIDER, machine(tmp_path), FACTS, records), records)
    write = atomic_file.write

    def full(path: Path, data: bytes | str, mode: int = 0o600) -> None:
        """A FAKE disk that is full for the second file."""
        if path == files[1]:
            raise HostError(Reason.DISK_FULL, "full")
        write(path, data, mode)

    with monkeypatch.context() as patched:
        patched.setattr(atomic_file, "write", full)
        with pytest.raises(HostError) as caught:
            change.undo(AIDER, records)
        assert caught.value.reason is Reason.DISK_FULL
    assert change.undo(AIDER, records).done
    assert [file.read_bytes() for file in files] == [b"a: 1\n", b"{}\n"]
    assert sorted(tmp_path.glob("*.sndr-backup*")) == []


def test_a_file_changed_since_is_not_put_back(person: Path, records: Records) -> None:
    file = person / ".codex" / "config.toml"
    change.write(change.propose(CODEX, machine(person), FACTS, records), records)
    file.write_bytes(file.read_bytes() + b"\nmine = 1\n")
    now = file.read_bytes()
    with pytest.raises(HostError) as caught:
        change.undo(CODEX, records)
    assert caught.value.reason is Reason.CONFLICT
    assert "-mine = 1" in caught.value.problem.evidence["difference"]
    assert file.read_bytes() == now
    # Written once more, undoing leads back to that.
    longer = FACTS.__class__(URL, "other", 9, key_needed=False)
    change.write(change.propose(CODEX, machine(person), longer, records), records)
    change.undo(CODEX, records)
    assert file.read_bytes() == now


def test_what_was_changed_since_is_kept_when_it_is_undone_all_the_same(
    person: Path, records: Records
) -> None:
    file = person / ".codex" / "config.toml"
    old = file.read_bytes()
    change.write(change.propose(CODEX, machine(person), FACTS, records), records)
    file.write_bytes(edited := file.read_bytes() + b"\nmine = 1\n")
    done = change.undo(CODEX, records, anyway=True)
    assert file.read_bytes() == old
    assert done.files[0].backup is not None
    assert Path(done.files[0].backup).read_bytes() == edited
    assert "-mine = 1" in done.files[0].difference
    assert not records.exists("codex")


def test_a_file_that_was_removed_since_comes_back_only_when_that_is_said(
    person: Path, records: Records
) -> None:
    file = person / ".codex" / "config.toml"
    old = file.read_bytes()
    change.write(change.propose(CODEX, machine(person), FACTS, records), records)
    file.unlink()
    with pytest.raises(HostError, match="removed since"):
        change.undo(CODEX, records)
    assert change.undo(CODEX, records, anyway=True).files[0].backup is None
    assert file.read_bytes() == old


def test_a_copy_that_is_gone_is_said(person: Path, records: Records) -> None:
    change.write(change.propose(CODEX, machine(person), FACTS, records), records)
    (person / ".codex" / "config.toml.sndr-backup").unlink()
    with pytest.raises(HostError) as caught:
        change.undo(CODEX, records)
    assert caught.value.reason is Reason.CONFLICT


def test_a_file_changed_while_one_looks_is_not_written(person: Path, records: Records) -> None:
    proposed = change.propose(CODEX, machine(person), FACTS, records)
    (person / ".codex" / "config.toml").write_text("x = 1\n")
    with pytest.raises(HostError) as caught:
        change.write(proposed, records)
    assert caught.value.reason is Reason.CONFLICT
    assert (person / ".codex" / "config.toml").read_text() == "x = 1\n"
    assert not records.exists("codex")


def test_one_file_that_cannot_be_written_puts_the_other_back(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed = change.propose(AIDER, machine(tmp_path), FACTS, records)
    write = atomic_file.write

    def full(path: Path, data: bytes | str, mode: int = 0o600) -> None:
        """A FAKE disk that is full for the second file."""
        if path == proposed.files[1].path:
            raise HostError(Reason.DISK_FULL, "full")
        write(path, data, mode)

    monkeypatch.setattr(atomic_file, "write", full)
    with pytest.raises(HostError):
        change.write(proposed, records)
    assert not (tmp_path / ".aider.conf.yml").exists()
    assert not records.exists("aider")


def test_a_link_is_left_alone(person: Path) -> None:
    file = person / ".codex" / "config.toml"
    file.rename(person / "real.toml")
    file.symlink_to(person / "real.toml")
    assert refused(person).reason is Reason.NOT_WRITABLE
    assert file.is_symlink()


def test_a_pipe_and_a_folder_are_left_alone(person: Path) -> None:
    file = person / ".codex" / "config.toml"
    file.unlink()
    os.mkfifo(file)
    assert "no regular file" in refused(person).problem.message
    file.unlink()
    file.mkdir()
    assert "no regular file" in refused(person).problem.message


def test_what_may_not_be_written_is_left_alone(person: Path) -> None:
    file = person / ".codex" / "config.toml"
    file.chmod(0o444)
    assert "read-only" in refused(person).problem.message
    file.chmod(0o600)
    with file.open("r+b") as large:
        large.truncate(10 << 20)
    assert "MiB" in refused(person).problem.message


@pytest.mark.parametrize("content", [b"a = ", b"a = 1\na = 2\n", b"\xff\xfe", b"a = 1\0"])
def test_what_cannot_be_read_is_left_alone(person: Path, content: bytes) -> None:
    file = person / ".codex" / "config.toml"
    file.write_bytes(content)
    assert refused(person).reason is Reason.SETTING_INVALID
    assert file.read_bytes() == content


def test_a_folder_that_is_a_file_is_said(tmp_path: Path, records: Records) -> None:
    (tmp_path / ".codex").write_text("no folder")
    with pytest.raises(HostError, match="left alone"):
        change.propose(CODEX, machine(tmp_path), FACTS, records)


def test_a_damaged_record_undoes_nothing(person: Path, records: Records, tmp_path: Path) -> None:
    change.write(change.propose(CODEX, machine(person), FACTS, records), records)
    (tmp_path / "data" / "connected" / "codex.json").write_text("{")
    with pytest.raises(HostError) as caught:
        change.undo(CODEX, records)
    assert caught.value.reason is Reason.CONFLICT
