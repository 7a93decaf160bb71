"""Patches of strangers as far as they are read: patch.toml, the names in their code, a vLLM's sources."""

import io
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import strategies as st

from engine_host.overlay.check import operations
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.patch_code import read_code
from engine_host.overlay.patch_file import read_patch_file
from engine_host.overlay.sources import open_source
from engine_host.protocol.patches import PatchPage
from tests.hostile.effort import clear, fuzz
from tests.hostile.making.text import words
from tests.hostile.making.toml import changed

pytestmark = pytest.mark.fuzz
SOUND = """\
id = "one"
title = "A test"
family = "test"
problem = "None."
upstream_issues = ["https://example.org/1"]
risk = "low"
requires = []
[applies_to]
vllm = ">=0.26,<0.33"
sm = ">=9.0"
[[text]]
module = "vllm.config"
find = "a"
replace = "b"
count = 1
[[rebind]]
module = "vllm.config"
target = "Config.read"
replacement = "patch:wrap"
signature = "(self)"
[[hook]]
point = "kernels"
function = "patch:kernels"
[probe]
modules = ["vllm.config"]
[[evidence]]
metric = "spaces"
before = 2000
"""
files = st.one_of(
    changed(SOUND),
    words,
)
code = st.one_of(
    words,
    st.sampled_from(
        [
            "(" * 300,
            "x = " + "1+" * 50_000 + "1",
            "-" * 3_000 + "1",
            "not " * 3_000 + "1",
            "[" * 3_000,
            "# coding: nonsense\n",
            "def wrap():\n" + " " * 90 + "pass",
            "\0",
            "lambda: " * 2_000 + "1",
            "a" + ".b" * 20_000,
            "f" + "()" * 5_000,
            "x = '" + "a" * 500_000 + "'",
            "class wrap: pass\nwrap = 1",
        ]
    ),
)


def test_patch_files() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "one"
        folder.mkdir()
        (folder / "patch.py").write_text("def wrap(): pass\ndef kernels(): pass\n")

        def check(text: str) -> None:
            (folder / "patch.toml").write_text(text, encoding="utf-8", errors="replace")
            read = clear(lambda: read_patch_file(folder))
            catalog = clear(lambda: PatchCatalog.load((Path(place),)))
            if catalog is not None:
                page = catalog.page(1, dict.fromkeys(catalog.patches, (True, "default")))
                assert PatchPage.model_validate_json(page.model_dump_json()) == page
            if read is not None:
                operations(LoadedPatch(folder, read), None)

        fuzz("patch.toml", files, check)


def test_code_of_a_patch_is_read_and_not_run() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "one"
        folder.mkdir()
        (folder / "patch.py").write_text("def wrap(): pass\ndef kernels(): pass\n")
        (folder / "patch.toml").write_text(SOUND)
        patch = LoadedPatch(folder, read_patch_file(folder))

        def check(text: str) -> None:
            (folder / "patch.py").write_text(text, encoding="utf-8", errors="replace")
            for name in ("patch:wrap", "patch:gone", "gone:wrap"):
                found = read_code(patch, name)
                assert found.fault or isinstance(found.source, str)

        fuzz("code of a patch", code, check, usual=0.5)


def test_wheels() -> None:
    sound = io.BytesIO()
    with zipfile.ZipFile(sound, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vllm/config.py", "A = 1\n" * 100)
        archive.writestr("vllm/__init__.py", "# coding: latin-1\nA = 'ß'\n".encode("latin-1"))
    raw = sound.getvalue()

    def flipped(places: list[tuple[int, int]]) -> bytes:
        made = bytearray(raw)
        for place, value in places:
            made[place % len(made)] = value
        return bytes(made)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vllm-0.32.0-py3-none-any.whl"

        def check(content: bytes) -> None:
            path.write_bytes(content)
            source = clear(lambda: open_source(path))
            if source is not None:
                for module in ("vllm", "vllm.config", "vllm.gone"):
                    clear(lambda module=module: source.read(module))  # type: ignore[misc]

        one = st.lists(st.tuples(st.integers(0, len(raw)), st.integers(0, 255)), min_size=1, max_size=6).map(
            flipped
        )
        cut = st.integers(0, len(raw)).map(lambda end: raw[:end])
        fuzz("wheels", st.one_of(one, cut, st.binary(max_size=40)), check, usual=0.5)
