"""Every anchor of every text patch, moved in a copy of vLLM: the patch is left out, and vLLM runs."""

import io
import json
import shutil
import subprocess
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from engine_host.overlay.bundle import write_bundle
from engine_host.overlay.inject.settle import settle
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import PatchOutcome, PatchReason
from tests.integration.host.conftest import RunningHost, home_left_empty
from tests.overlay_engine import PATCHES, load_patches
from tests.vllm_environment import share_model_infos, site_packages, vllm_venv, vllm_version

START = 300.0
pytestmark = pytest.mark.timeout(2 * START)


def specs(name: str) -> list[dict[str, Any]]:
    """A patch with what it requires, as it stands in a bundle for the installed vLLM."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = write_bundle(load_patches([name]), vllm_version(), Path(folder))
        manifest = json.loads((bundle.folder / "manifest.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = manifest["patches"]
    return found


NAMES = sorted(path.parent.name for path in PATCHES.glob("*/patch.toml"))
# What is for another version has its anchors elsewhere: `sndr patches check` looks there.
EDITS = [
    (patch.id, number)
    for patch in load_patches(NAMES)
    if SpecifierSet(patch.file.applies_to.vllm).contains(Version(vllm_version()).base_version)
    for number in range(len(specs(patch.id)[-1]["text"]))
]


def source_file(root: Path, module: str) -> Path:
    """A module's file below a folder of packages."""
    path = root.joinpath(*module.split("."))
    return path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"


def tokens(source: str) -> list[tuple[int, str]]:
    """What Python sees of a source."""
    return [(one.type, one.string) for one in tokenize.generate_tokens(io.StringIO(source).readline)]


def moved(source: str, anchor: str) -> str:
    """The source with one more blank inside the anchor, where Python does not see it."""
    whole = tokens(source)
    for place in sorted(range(1, len(anchor)), key=lambda place: anchor[place] not in " (["):
        changed = source.replace(anchor, f"{anchor[:place]} {anchor[place:]}")
        try:
            if anchor not in changed and tokens(changed) == whole:
                return changed
        except (SyntaxError, tokenize.TokenError):
            continue
    raise AssertionError("this anchor has no place for a blank")


def test_there_are_text_patches() -> None:
    assert len(EDITS) >= 5


@pytest.mark.parametrize(("name", "number"), EDITS)
def test_a_patch_whose_anchor_moved_is_left_out(name: str, number: int, tmp_path: Path) -> None:
    wanted = specs(name)
    for spec in wanted:
        for operation in (*spec["text"], *spec["rebind"]):
            original = source_file(site_packages(), operation["module"])
            copy = tmp_path / original.relative_to(site_packages())
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(original, copy)
    found = settle(wanted, str(tmp_path / "vllm"))
    assert found.patches[name].alive, found.patches[name].detail
    edit = wanted[-1]["text"][number]
    copy = source_file(tmp_path, edit["module"])
    copy.write_text(moved(copy.read_text(encoding="utf-8"), edit["find"]), encoding="utf-8")
    found = settle(wanted, str(tmp_path / "vllm"))
    state = found.patches[name]
    assert (state.alive, state.outcome, state.reason) == (False, "skipped", "anchor_missing")
    assert edit["module"] in state.detail
    others = {one["module"] for spec in wanted[:-1] for one in spec["text"]}
    assert set(found.texts) <= others, "nothing of a patch that is left out may stay"


@pytest.fixture
def drifted_vllm() -> Iterator[Path]:
    """A copy of the environment by hard links in which every anchor of every text patch has moved."""
    # Beside the original: links do not cross file systems.
    folder = Path(tempfile.mkdtemp(prefix="sndr-drift-", dir=vllm_venv().parent))
    copy = folder / "vllm"
    subprocess.run(["cp", "-al", str(vllm_venv()), str(copy)], check=True)
    packages = copy / site_packages().relative_to(vllm_venv())
    for name, number in EDITS:
        edit = specs(name)[-1]["text"][number]
        file = source_file(packages, edit["module"])
        changed = moved(file.read_text(encoding="utf-8"), edit["find"])
        file.unlink()  # A link: writing into it would change the original.
        file.write_text(changed, encoding="utf-8")
    yield copy
    shutil.rmtree(folder)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningHost]:
    """A host in folders of its own."""
    with home_left_empty("sndr-m-") as home:
        monkeypatch.setenv("SNDR_HOME", str(home))
        monkeypatch.delenv("SNDR_CACHE", raising=False)
        made = RunningHost().connect()
        share_model_infos(made.folders.cache)
        yield made
        made.end()


def test_vllm_starts_and_answers_without_them(host: RunningHost, drifted_vllm: Path) -> None:
    request = LaunchRequest(
        model="sndr-demo",
        engine=EngineKind.VLLM,
        installation=str(drifted_vllm),
        overrides=Overrides(context=512, streams=1, kv_cache_gib=0.5, eager=True),
    )
    engine = host.launch(request, START)
    assert engine.verified is not None
    assert engine.verified.token_generated
    assert engine.plan.patches is not None
    with_text = {name for name, _ in EDITS} & set(engine.plan.patches.chosen)
    assert with_text
    found = host.client.call(ops.ENGINE_PATCHES, id=engine.id)
    assert {"APIServer", "EngineCore", "Worker"} <= {process.role for process in found.processes}
    for process in found.processes:
        for result in process.results:
            if result.patch in with_text:
                assert (result.outcome, result.reason) == (PatchOutcome.SKIPPED, PatchReason.ANCHOR_MISSING)
