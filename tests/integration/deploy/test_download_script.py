"""The script that fetches a model, against a real server: what it keeps, refuses and says."""

import hashlib
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine_host.deploy.deployment import Download
from engine_host.deploy.targets.parts import download_script
from engine_host.protocol.launch.deploy import RenderTarget
from tests.unit.deploy.samples import deployed, wanted_of

CONTENT = b"GGUF and more"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_: object) -> None:
        """Nothing to say."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where the model is served."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "m.gguf").write_bytes(CONTENT)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/m.gguf"
    server.shutdown()
    server.server_close()
    thread.join()


def fetched(
    address: str, tmp_path: Path, size: int | None, sha256: str | None
) -> tuple[int, str, bytes | None]:
    """What the script ends with, what it says, and the file that it leaves."""
    made = deployed(wanted_of("qwen3.6-27b-q4-24"), RenderTarget.SHELL)
    script = download_script(replace(made, downloads=(Download(address, "m.gguf", size, sha256),)))
    path = tmp_path / "download.sh"
    path.write_text(script.text, encoding="utf-8")
    models = tmp_path / "models"
    ended = subprocess.run(
        ["bash", path],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), "SNDR_MODELS": str(models)},
        capture_output=True,
        text=True,
        check=False,
    )
    file = models / "m.gguf"
    assert not (models / "m.gguf.part").exists()
    return ended.returncode, ended.stderr, file.read_bytes() if file.exists() else None


def test_what_is_right_is_kept(address: str, tmp_path: Path) -> None:
    code, said, file = fetched(address, tmp_path, len(CONTENT), SHA256)
    assert (code, file) == (0, CONTENT)
    assert "not known" not in said


def test_what_has_another_size_or_hash_goes(address: str, tmp_path: Path) -> None:
    code, said, file = fetched(address, tmp_path, len(CONTENT) + 1, None)
    assert (code, file) == (1, None)
    assert f"has {len(CONTENT)} bytes in the place of {len(CONTENT) + 1}" in said
    code, said, file = fetched(address, tmp_path, None, "0" * 64)
    assert (code, file) == (1, None)
    assert "SHA-256" in said


def test_what_could_not_be_checked_is_told(address: str, tmp_path: Path) -> None:
    code, said, file = fetched(address, tmp_path, None, None)
    assert (code, file) == (0, CONTENT)
    assert "its SHA-256 is not known" in said
