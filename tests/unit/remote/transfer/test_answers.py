"""What another machine says of files may be anything: nothing of it leads out of the folder meant."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.remote.run import Feed, RemoteOutcome, RemoteScript, Take
from engine_host.remote.transfer.download import download
from engine_host.remote.transfer.files import understood
from engine_host.remote.transfer.pace import Pace, Told


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

    def __init__(self, printed: bytes) -> None:
        self.printed = printed

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
