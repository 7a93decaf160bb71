"""Writes patch folders for tests: a valid patch that does one thing, and whatever a test adds to it."""

from collections.abc import Mapping
from pathlib import Path

from engine_host.overlay.patch_catalog import PatchCatalog

RANGE = 'vllm = ">=0.26,<0.33"'
TEXT = """
[[text]]
module = "vllm.config"
find = "a"
replace = "b"
"""


def write_patch(
    place: Path,
    patch_id: str,
    top: str = "",
    *,
    where: str = RANGE,
    operations: str = TEXT,
    family: str = "test",
    code: Mapping[str, str] | None = None,
) -> Path:
    """A patch folder below `place`: `top` are more keys of the file, `where` is its `[applies_to]`."""
    folder = place / patch_id
    folder.mkdir(parents=True)
    text = (
        f'id = "{patch_id}"\ntitle = "A test"\nfamily = "{family}"\nproblem = "None."\nrisk = "low"\n{top}\n'
        f"[applies_to]\n{where}\n{operations}"
    )
    (folder / "patch.toml").write_text(text, encoding="utf-8")
    for name, content in (code or {}).items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def load(place: Path) -> PatchCatalog:
    """The catalogue of these folders alone; a fault fails the test."""
    catalogue = PatchCatalog.load((place,))
    assert catalogue.faults == ()
    return catalogue
