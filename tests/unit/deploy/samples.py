"""Every shipped preset as something to write down, with an overlay that does not change with the patches."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from engine_host.catalog.index import Catalog
from engine_host.catalog.resolve import TargetHardware, require, resolve
from engine_host.deploy.build import deployment_of
from engine_host.deploy.deployment import Deployment, Gpus, Overlay, Root
from engine_host.deploy.spec import DeploySpec, Patched
from engine_host.deploy.targets.render import NATIVE, render
from engine_host.operations.deploy import on_paper, source_of
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.launch.deploy import Rendering, RenderTarget
from tests.shipped_catalog import shipped

RESOURCES = Path("/srv/sndr/resources")
UUIDS = ("GPU-3f2c1a90-5b1e-4c52-9d3e-0a6f1b7c8d11", "GPU-7d41e0b2-90aa-4f0c-8a55-2c9be3f40c22")
_DIGEST = "0123456789abcdef"
_OVERLAY = Overlay(
    _DIGEST,
    ("json-whitespace-limit", "oom-keeps-engine"),
    {"sitecustomize.py": "import sndr_overlay.start\n", "manifest.json": "{}"},
)
PATCHED = Patched(
    _OVERLAY,
    ("--additional-config", f'{{"sndr_patches": "{_DIGEST}"}}'),
    {
        "SNDR_OVERLAY": Root.OVERLAY,
        "SNDR_OVERLAY_LEDGER": Root.LEDGER,
        "SNDR_OVERLAY_SHADOW": f"{Root.CACHE}/shadow",
        "VLLM_CACHE_ROOT": f"{Root.CACHE}/vllm/{_DIGEST}",
        "PYTHONPATH": Root.OVERLAY,
    },
)


@cache
def catalog() -> Catalog:
    """The shipped catalogue."""
    return shipped()


def wanted_of(preset_id: str, resources: Path = RESOURCES) -> DeploySpec:
    """A preset on the hardware that it is known to run on."""
    needs = catalog().preset(preset_id).needs
    machine = TargetHardware(needs.known_good[0], max(1, needs.gpus)) if needs.known_good else None
    resolved = require(resolve(catalog(), preset_id, machine))
    patched = PATCHED if resolved.engine is PresetEngine.VLLM else None
    return on_paper(resolved, source_of(resolved, resources), patched)


def deployed(wanted: DeploySpec, target: RenderTarget) -> Deployment:
    """What a target gets."""
    return deployment_of(replace(wanted, native=target in NATIVE))


def rendered(wanted: DeploySpec, target: RenderTarget) -> Rendering:
    """What a target makes of it."""
    return render(deployed(wanted, target), target)


def by_uuid(wanted: DeploySpec) -> DeploySpec:
    """The same on two GPUs that are known."""
    return replace(wanted, gpus=Gpus(len(UUIDS), UUIDS))


def everything(resources: Path = RESOURCES) -> Iterator[tuple[str, Rendering]]:
    """Every preset for every target."""
    for preset_id in catalog().ids():
        wanted = wanted_of(preset_id, resources)
        for target in RenderTarget:
            yield preset_id, rendered(wanted, target)


def write(rendering: Rendering, folder: Path) -> Path:
    """The files of a rendering, in a folder."""
    for file in rendering.files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
        path.chmod(0o755 if file.executable else 0o644)
    return folder
