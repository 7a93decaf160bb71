"""Launch with its presets, as the tests of that page find it."""

from typing import Any

from engine_host.protocol.engines import InstallationPage
from engine_host.protocol.host import Gpu
from sndr_gui.views.launch.page import LaunchView
from tests.views.conftest import Stage
from tests.views.samples import host as samples

FIT, PLANS, VERDICTS = "/v1/fit", "/v1/plans", "/v1/presets/verdicts"
GIB = 2**30


async def page(stage: Stage, preset: str = "", gpus: int = 1, cuda: bool = True) -> LaunchView:
    """Launch with its presets judged, and one of them chosen."""
    cards = tuple(
        Gpu(index=place, uuid=f"u{place}", name="RTX 3090", memory_total=24 * GIB, memory_used=2 * GIB)
        for place in range(gpus)
    )
    stage.host.host = samples.host(gpus=cards, gpu_absence=None)
    stage.state.host = stage.host.host
    both = (samples.installation("cuda"), samples.installation())
    stage.host.installations = (
        InstallationPage(seq=0, installations=both) if cuda else samples.installations()
    )
    stage.pages.installations.load()
    await stage.until(lambda: stage.pages.installations.page == stage.host.installations)
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    await stage.until(lambda: view.model.presets.verdicts is not None and view.model.subject is not None)
    if preset:
        view.model.select_preset(preset)
        await stage.until(lambda: view.model.presets.detail is not None)
    await stage.until(lambda: view.model.fit.report is not None and not view.model.fit.waiting)
    return view


def asked(stage: Stage, path: str) -> dict[str, Any]:
    """The newest request to a path; nothing but names while there was none."""
    sent = stage.host.sent("POST", path) or [{"preset": None, "model": None, "overrides": {}}]
    body: dict[str, Any] = sent[-1]
    return body
