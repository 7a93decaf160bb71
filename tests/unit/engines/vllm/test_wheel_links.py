"""The wheel that a folder or a page offers is decided by its tags, not by the beginning of its name."""

import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine_host.engines.vllm.package_sources import package_sources
from engine_host.engines.vllm.wheel_links import environment_tags, has_wheel
from packaging import tags

VERSION = f"cp{sys.version_info.major}{sys.version_info.minor}"
PLATFORM = next(tags.platform_tags())
FITS = f"torch-2.13.0+cpu-{VERSION}-{VERSION}-{PLATFORM}.whl"
WANTED = "torch==2.13.0+cpu"


@pytest.fixture
def supported() -> frozenset[tags.Tag]:
    """The tags of this Python."""
    return frozenset(tags.sys_tags())


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A real page server; its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{web.server_address[1]}"
        web.shutdown()
        thread.join()


def test_an_environment_of_another_python_takes_other_wheels(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("implementation = CPython\nversion_info = 3.99.1\n")
    supported = environment_tags(tmp_path)
    (tmp_path / FITS).touch()
    assert not has_wheel([str(tmp_path)], WANTED, supported)
    (tmp_path / FITS.replace(VERSION, "cp399")).touch()
    assert has_wheel([str(tmp_path)], WANTED, supported)
    (tmp_path / "pyvenv.cfg").write_text("home = /usr\n")
    with pytest.raises(ValueError, match="names no version"):
        environment_tags(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        f"torch-2.13.0+cpu-cp399-cp399-{PLATFORM}.whl",
        f"torch-2.13.0+cpu-{VERSION}-{VERSION}-win_amd64.whl",
        f"torch-2.13.0-{VERSION}-{VERSION}-{PLATFORM}.whl",
        f"torch-2.13.0+cu130-{VERSION}-{VERSION}-{PLATFORM}.whl",
        f"torch-2.13.1+cpu-{VERSION}-{VERSION}-{PLATFORM}.whl",
        f"torchvision-2.13.0+cpu-{VERSION}-{VERSION}-{PLATFORM}.whl",
        "torch-2.13.0+cpu.tar.gz",
        "torch-2.13.0+cpu-broken.whl",
    ],
)
def test_other_files_do_not_count(name: str, tmp_path: Path, supported: frozenset[tags.Tag]) -> None:
    (tmp_path / name).touch()
    assert not has_wheel([str(tmp_path)], WANTED, supported)


def test_a_folder_by_path_and_by_address(tmp_path: Path, supported: frozenset[tags.Tag]) -> None:
    folder = tmp_path / "my wheels"
    folder.mkdir()
    (folder / FITS).touch()
    assert has_wheel([str(folder)], WANTED, supported)
    assert "%20" in folder.as_uri()
    assert has_wheel(["/nowhere", folder.as_uri()], WANTED, supported)
    assert has_wheel([(folder / FITS).as_uri()], WANTED, supported)
    assert not has_wheel([], WANTED, supported)


@pytest.mark.parametrize(
    "link",
    [
        FITS,
        f"../w/{FITS.replace('+', '%2B')}#sha256=0",
        f"file:///elsewhere/{FITS}",
        f"https://example.org/whl/{FITS.replace('+', '%2B')}?x=1",
    ],
)
def test_a_page_with_links_of_every_kind(link: str, tmp_path: Path, supported: frozenset[tags.Tag]) -> None:
    page = tmp_path / "links.html"
    page.write_text(f'<html><body><a href="x.whl">x</a><a class="w" href="{link}">torch</a></body></html>')
    assert has_wheel([str(page)], WANTED, supported)
    assert has_wheel([page.as_uri()], WANTED, supported)
    with served(tmp_path) as address:
        assert has_wheel([f"{address}/links.html"], WANTED, supported)
        assert not has_wheel([f"{address}/gone.html"], WANTED, supported)
    assert not has_wheel([f"{address}/links.html"], WANTED, supported)


def test_a_relative_folder_is_one_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    none = {"PIP_CONFIG_FILE": str(tmp_path / "none"), "XDG_CONFIG_HOME": str(tmp_path)}
    found = package_sources({**none, "PIP_FIND_LINKS": "wheels file:///w http://h/p.html"}, tmp_path)
    assert found.links == (str(tmp_path / "wheels"), "file:///w", "http://h/p.html")
    both = package_sources({**none, "PIP_FIND_LINKS": "/a", "UV_FIND_LINKS": "b,/a,"}, tmp_path)
    assert both.links == ("/a", str(tmp_path / "b"))
    assert both.arguments[-4:] == ["--find-links", "/a", "--find-links", str(tmp_path / "b")]
