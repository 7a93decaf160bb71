"""What another machine says of files may be anything: nothing of it leads out of the folder meant."""

import asyncio
import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.remote.run import Feed, RemoteOutcome, RemoteScript, Take
from engine_host.remote.scripts.receive_file import sizes, there
from engine_host.remote.transfer.download import download, hash_there
from engine_host.remote.transfer.files import understood
from engine_host.remote.transfer.pace import Pace, Told
from engine_host.remote.upload import upload


def listed(*names: object, **more: object) -> dict[str, Any]:
    """Return the answer of a machine with these files."""
    return {"folder": "/models/a", "files": [{"name": name, "size": 1} for name in names], **more}


@pytest.mark.parametrize(
    "told",
    [
        listed("../../.ssh/authorized_keys"),
        listed("/etc/passwd"),
        listed("~/x"),
        listed("a/../b"),
        listed("a\nb"),
        listed("a\\b"),
        listed("\x1b[31m"),
        listed("x" * 300),
        listed(7),
        listed(),
        listed("a", "a"),
        listed("a", start="b"),
        listed("a", folder="/models/\n"),
        listed("a", folder="/models/.."),
        listed("a", folder="/"),
        listed("a", folder="/models/~root"),
        listed("a", folder="/models/.ssh"),
        listed("a", folder="/c/models--org--../snapshots/0123"),
        listed("...gguf", "authorized_keys", start="...gguf"),
        listed("...-00001-of-00002.gguf", "b", start="...-00001-of-00002.gguf"),
        listed(".bash_profile"),
        listed(".bash_profile", start=".bash_profile"),
        listed(".ssh/authorized_keys"),
        listed("a/.ssh/authorized_keys"),
        listed("a", start="a", blob="../../etc/shadow\x1b[31m"),
        {"folder": "/m", "files": [{"name": "a", "size": -1}]},
        {"folder": "/m", "files": [{"name": "a", "size": 1 << 70}]},
        {"folder": "/m", "files": 7},
        {},
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(HostError) as refused:
        understood(told, "a", "gpu")
    assert refused.value.reason is Reason.UNSUPPORTED


@pytest.mark.parametrize("failure", ["missing", "none", "several", 7, ["x"], "refused"])
def test_what_is_no_model_is_said(failure: object) -> None:
    with pytest.raises(HostError) as missing:
        understood({"error": failure, "path": "/x", "text": "no"}, "a", "gpu")
    assert missing.value.reason is Reason.MODEL_FILE_MISSING


def test_a_model_of_several_files_gets_a_folder_of_its_own() -> None:
    parts = ("big-00001-of-00002.gguf", "big-00002-of-00002.gguf")
    assert understood(listed(*parts, start=parts[0]), "big", "gpu").name == "big"
    assert understood(listed("one.gguf", start="one.gguf"), "one", "gpu").name == ""
    assert understood(listed("config.json", "m.safetensors"), "a", "gpu").name == "a"
    hub = listed("config.json", folder="/c/models--org--model/snapshots/0123")
    assert understood(hub, "org/model", "gpu").name == "model"
    blob = understood(listed("sha256-1", start="sha256-1"), "qwen", "gpu").called("qwen.gguf")
    assert (blob.start, blob.read_as("qwen.gguf"), blob.size) == ("qwen.gguf", "sha256-1", 1)


class Says:
    """FAKE: a machine that answers a download with some bytes; MARK in them is the mark that it was sent."""

    def __init__(self, printed: bytes, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.printed = printed
        self.meanwhile = meanwhile

    async def run(
        self, name: str, script: RemoteScript, data: bytes = b"", *, seconds: float = 30.0, most: int = 0
    ) -> RemoteOutcome:
        """Print it."""
        return RemoteOutcome(0, self.printed, "")

    async def run_fed(
        self,
        name: str,
        script: RemoteScript,
        feed: Feed,
        seconds: float | None,
        most: int = 0,
        take: Take | None = None,
    ) -> RemoteOutcome:
        """Print it, in small pieces."""
        sent = Sent()
        await feed(sent)  # type: ignore[arg-type]
        mark = json.loads(sent.text.splitlines()[-1])["mark"].encode()
        assert take is not None
        told = self.printed.replace(b"MARK", mark)
        for at in range(0, len(told), 7):
            await take(told[at : at + 7])
        self.meanwhile()
        return RemoteOutcome(0, b"", "")


class Sent:
    """FAKE: a standard input that keeps what it gets."""

    text = b""

    def write(self, content: bytes) -> None:
        """Keep it."""
        self.text += content

    async def drain(self) -> None:
        """Do nothing."""


SHA256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""Of `abc`."""


def fetched(printed: bytes, folder: Path) -> bytes:
    """Return the file that comes of an answer."""
    asyncio.run(download(Says(printed), "gpu", "/models/a.gguf", folder / "a.gguf"))
    return (folder / "a.gguf").read_bytes()


def test_a_file_is_found_behind_whatever_a_shell_prints(tmp_path: Path) -> None:
    told = b'Welcome\nMAR\nMARK\n{"size": 3, "from": 0}\nabc{"sha256": "%s"}\n' % SHA256.encode()
    assert fetched(told, tmp_path) == b"abc"
    assert [path.name for path in tmp_path.iterdir()] == ["a.gguf"]


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (b"", Reason.SSH_FAILED),
        (b"x" * 100_000, Reason.SSH_FAILED),
        (b"\nMARK\n" + b"x" * 100_000, Reason.SSH_FAILED),
        (b"\nMARK\n[]\n", Reason.SSH_FAILED),
        (b'\nMARK\n{"size": -1, "from": 0}\n', Reason.SSH_FAILED),
        (b'\nMARK\n{"size": 1, "from": 2}\n', Reason.SSH_FAILED),
        (b'\nMARK\n{"size": 1e999, "from": 0}\n', Reason.SSH_FAILED),
        (b'\nMARK\n{"size": 9, "from": 0}\nabc', Reason.SSH_FAILED),
        (b'\nMARK\n{"size": 3, "from": 0}\nabc{"sha256": "00"}\n', Reason.VERIFICATION_FAILED),
        (b'\nMARK\n{"size": 3, "from": 0}\nabc{}\n', Reason.VERIFICATION_FAILED),
        (b'\nMARK\n{"error": "missing", "text": "no"}\n', Reason.MODEL_FILE_MISSING),
    ],
)
def test_an_answer_of_another_form_puts_no_file_in_its_place(
    printed: bytes, reason: Reason, tmp_path: Path
) -> None:
    with pytest.raises(HostError) as refused:
        fetched(printed, tmp_path)
    assert refused.value.reason is reason
    assert not (tmp_path / "a.gguf").exists()


WHOLE = b'\nMARK\n{"size": 3, "from": 0}\nabc{"sha256": "%s"}\n' % SHA256.encode()


def test_what_lies_on_the_disk_is_hashed_and_not_what_came(tmp_path: Path) -> None:
    part = tmp_path / ".a.gguf.sndr-part"

    def somebody_writes() -> None:
        part.write_bytes(b"another file")

    with pytest.raises(HostError) as damaged:
        asyncio.run(download(Says(WHOLE, somebody_writes), "gpu", "/m/a.gguf", tmp_path / "a.gguf"))
    assert damaged.value.reason is Reason.VERIFICATION_FAILED
    assert not list(tmp_path.iterdir())


def test_a_part_that_somebody_else_fetches_to_is_left_alone(tmp_path: Path) -> None:
    part = tmp_path / ".a.gguf.sndr-part"
    part.write_bytes(b"ab")
    with part.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(HostError) as busy:
            fetched(WHOLE, tmp_path)
    assert busy.value.reason is Reason.CONFLICT
    assert part.read_bytes() == b"ab"
    assert fetched(WHOLE, tmp_path) == b"abc"


@pytest.mark.parametrize("late", [False, True])
def test_a_file_that_came_to_be_there_stays_until_somebody_says_so(tmp_path: Path, *, late: bool) -> None:
    target = tmp_path / "a.gguf"

    def come() -> None:
        target.write_bytes(b"mine")

    if not late:
        come()
    with pytest.raises(HostError) as other:
        asyncio.run(download(Says(WHOLE, come), "gpu", "/m/a.gguf", target))
    assert other.value.reason is Reason.CONFLICT
    assert target.read_bytes() == b"mine"
    asyncio.run(download(Says(WHOLE), "gpu", "/m/a.gguf", target, replace=True))
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"abc"]


@pytest.mark.parametrize("error", ["missing", "refused", 7])
def test_a_part_stays_where_the_file_cannot_be_read_there_now(tmp_path: Path, error: object) -> None:
    part = tmp_path / ".a.gguf.sndr-part"
    part.write_bytes(b"ab")
    told = json.dumps({"error": error, "text": "the disk is not mounted"}).encode()
    with pytest.raises(HostError) as missing:
        fetched(b"\nMARK\n" + told + b"\n", tmp_path)
    assert missing.value.reason is Reason.MODEL_FILE_MISSING
    assert part.read_bytes() == b"ab"
    part.unlink()
    with pytest.raises(HostError):
        fetched(b"\nMARK\n" + told + b"\n", tmp_path)
    assert not list(tmp_path.iterdir()), "nothing came, and nothing is left of it"


class Waits:
    """FAKE: a machine that has every file, and keeps how long it may take to say so."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def run(
        self, name: str, script: RemoteScript, data: bytes = b"", *, seconds: float = 30.0, most: int = 0
    ) -> RemoteOutcome:
        """Say so."""
        self.seconds.append(seconds)
        return RemoteOutcome(0, b'{"done": true, "path": "/a", "sha256": "00"}\n', "")

    async def run_fed(
        self,
        name: str,
        script: RemoteScript,
        feed: Feed,
        seconds: float | None,
        most: int = 0,
        take: Take | None = None,
    ) -> RemoteOutcome:
        """Nothing has to be sent."""
        raise AssertionError


def test_hashing_there_may_take_as_long_as_a_large_file_needs(tmp_path: Path) -> None:
    size = 900 * 10**9
    hosts = Waits()
    asyncio.run(upload(hosts, "gpu", tmp_path / "a", "/a", measured=(size, SHA256)))
    asyncio.run(hash_there(hosts, "gpu", "/a", size))
    assert len(hosts.seconds) == 2
    assert all(seconds >= size / 50e6 for seconds in hosts.seconds)
    asyncio.run(upload(hosts, "gpu", tmp_path / "a", "/a", measured=(1, SHA256)))
    assert hosts.seconds[-1] < 3600


def test_a_part_that_is_longer_than_the_file_is_not_hashed(tmp_path: Path) -> None:
    part = tmp_path / ".a.sndr-part"
    part.write_bytes(b"abcd")
    path = str(tmp_path / "a")
    assert there(path, str(part), {"size": 3, "sha256": SHA256}) == {"size": 0}
    assert there(path, str(part), {"size": 4, "sha256": SHA256})["size"] == 4


def test_a_rate_is_measured_or_none() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    rates: list[float | None] = []
    for at, done in ((0.0, 0), (0.1, 10), (1.0, 100), (2.0, 200), (3.0, 50)):
        now[0] = at
        pace.add(done)
        rates.append(pace.rate)
    assert rates == [None, None, 100.0, 100.0, None]


def test_a_step_tells_what_is_there_of_all() -> None:
    told: list[tuple[str, float | None]] = []
    telling = Told(lambda detail, share: told.append((detail, share)))
    telling.total, telling.before = 200, 100
    telling.carrying("b.gguf")(50, 100)
    assert told[-1] == ("b.gguf: 150 B of 200 B", 0.75)


def test_what_was_carried_before_a_connection_broke_is_counted_and_the_rate_begins_anew() -> None:
    told: list[str] = []
    telling = Told(lambda detail, _share: told.append(detail))
    telling.total = 200
    for first, last in ((0, 90), (80, 200)):
        # What was on its way was lost, and went twice.
        carrying = telling.carrying("a.gguf")
        carrying(first, 200)
        carrying(last, 200)
        telling.breaks("gpu")
    assert telling.carried == 90 + 120
    assert telling._pace.rate is None
    assert "gpu broke" in told[-1]


def test_a_folder_in_the_place_of_a_file_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    told = sizes(str(tmp_path), ["a"])
    assert (told["error"], told["text"]) == ("refused", f"{tmp_path / 'a'} is a folder")


def test_a_link_that_leads_nowhere_is_another_file_of_the_name(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "gone")
    assert sizes(str(tmp_path), ["a", "b"])["files"] == [[-1, None], [None, None]]
