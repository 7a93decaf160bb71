"""What the control API says of the catalogue: read anew, checked against a vLLM on disk, switched."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.settings import SettingsFile
from engine_host.engines.vllm.installations import VllmInstallations
from engine_host.operations.patches.catalog import PatchOperations, read_switches
from engine_host.operations.plans import PlanOperations
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.selection import Switches
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest
from engine_host.protocol.patches import CheckVerdict, PatchPage, PatchQuery, PlannedPatches, SwitchPatches
from tests.plan_samples import plain_plan, vllm_plan
from tests.unit.asynchronous import run
from tests.unit.overlay.patch_folders import write_patch


class FakePlanner(PlanOperations):
    """A FAKE planner that answers with one plan."""

    def __init__(self, patches: PlannedPatches | None) -> None:
        self._patches = patches

    async def plan(self, request: LaunchRequest) -> LaunchPlan:
        make = vllm_plan if self._patches else plain_plan
        return make(model=request.model, name=request.model, patches=self._patches)


@dataclass
class Desk:
    """The services over two patches, and what they told others."""

    services: PatchOperations
    settings: SettingsFile
    events: EventLog
    folder: Path
    changed: list[tuple[str, ...]] = field(default_factory=list)


def vllm(place: Path, config: str = "a = 1\n", version: str = "0.32.0") -> Path:
    """A folder as site-packages is, with a FAKE vLLM of one module."""
    (place / "vllm").mkdir(parents=True)
    (place / "vllm" / "config.py").write_text(config)
    metadata = place / f"vllm-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Name: vllm\nVersion: {version}\n")
    return place


def at_a_desk(
    tmp_path: Path,
    work: Callable[[Desk], Coroutine[Any, Any, None]],
    planned: PlannedPatches | None = None,
) -> None:
    async def act() -> None:
        events = EventLog()
        settings = SettingsFile(tmp_path / "settings.toml")
        settings.load()
        changed: list[tuple[str, ...]] = []

        async def settings_changed(names: tuple[str, ...]) -> None:
            changed.append(names)

        folder = tmp_path / "patches"
        write_patch(folder, "one")
        write_patch(folder, "two", 'requires = ["one"]', family="attention.turboquant")
        services = PatchOperations(
            lambda: PatchCatalog.load((folder,)),
            settings,
            settings_changed,
            VllmInstallations(tmp_path / "environments", lambda: False),
            FakePlanner(planned),
            PresetOperations(presets, tmp_path / "presets", settings, events, lambda: ()),
            events,
        )
        await work(Desk(services, settings, events, folder, changed))
        events.close()

    run(act())


def states(page: PatchPage) -> dict[str, tuple[str, str]]:
    return {patch.id: (patch.switch, patch.switched_by) for patch in page.patches}


def test_a_patch_that_is_written_now_is_in_the_next_page(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        assert [patch.id for patch in (await desk.services.page()).patches] == ["one", "two"]
        write_patch(desk.folder, "three")
        (desk.folder / "one" / "patch.toml").write_text("no longer TOML")
        page = await desk.services.page()
        assert [patch.id for patch in page.patches] == ["three"]
        assert [Path(fault.folder).name for fault in page.faults] == ["one", "two"]

    at_a_desk(tmp_path, work)


def test_a_switch_is_kept_and_told(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        page = await desk.services.switch(SwitchPatches(names=("attention",), to="off"))
        assert states(page) == {"one": ("on", "default"), "two": ("off", "attention")}
        assert read_switches(desk.settings).off == ("attention",)
        assert desk.changed == [("patches.off",)]
        assert desk.events.seq == 1
        again = SettingsFile(tmp_path / "settings.toml")
        again.load()
        assert read_switches(again).off == ("attention",)

    at_a_desk(tmp_path, work)


def test_a_switch_the_other_way_leaves_no_trace_of_the_first(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.services.switch(SwitchPatches(names=("one", "two", "one"), to="off"))
        assert read_switches(desk.settings).off == ("one", "two")
        page = await desk.services.switch(SwitchPatches(names=("one",), to="on"))
        assert states(page) == {"one": ("on", "one"), "two": ("off", "two")}
        assert read_switches(desk.settings) == Switches(off=("two",), on=("one",))
        page = await desk.services.switch(SwitchPatches(names=("one", "two"), to="default"))
        assert states(page) == {"one": ("on", "default"), "two": ("on", "default")}
        assert read_switches(desk.settings) == Switches(off=(), on=())

    at_a_desk(tmp_path, work)


def test_a_family_and_all_mean_all_of_it(tmp_path: Path) -> None:
    """A switch of one patch would win over its family's: what the wider switch covers is taken back."""

    async def work(desk: Desk) -> None:
        await desk.services.switch(SwitchPatches(names=("two",), to="on"))
        page = await desk.services.switch(SwitchPatches(names=("attention",), to="off"))
        assert states(page)["two"] == ("off", "attention")
        assert read_switches(desk.settings) == Switches(off=("attention",), on=())
        await desk.services.switch(SwitchPatches(names=("one",), to="on"))
        page = await desk.services.switch(SwitchPatches(names=("all",), to="off"))
        assert states(page) == {"one": ("off", "all"), "two": ("off", "all")}
        page = await desk.services.switch(SwitchPatches(names=("all",), to="default"))
        assert states(page) == {"one": ("on", "default"), "two": ("on", "default")}
        assert read_switches(desk.settings) == Switches(off=(), on=())

    at_a_desk(tmp_path, work)


def test_a_switch_that_changes_nothing_tells_nobody(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        for _ in range(2):
            await desk.services.switch(SwitchPatches(names=("all",), to="off"))
        assert len(desk.changed) == 1
        assert desk.events.seq == 1

    at_a_desk(tmp_path, work)


def test_a_name_that_means_nothing_switches_nothing(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        with pytest.raises(HostError) as raised:
            await desk.services.switch(SwitchPatches(names=("one", "onee"), to="off"))
        assert raised.value.reason is Reason.PATCH_UNKNOWN
        assert read_switches(desk.settings).off == ()

    at_a_desk(tmp_path, work)


def test_the_switch_of_a_patch_that_is_gone_can_be_taken_back(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        desk.settings.change({"patches.off": ["retired", "one"]})
        page = await desk.services.switch(SwitchPatches(names=("retired",), to="default"))
        assert read_switches(desk.settings).off == ("one",)
        assert states(page)["one"] == ("off", "one")

    at_a_desk(tmp_path, work)


@pytest.mark.parametrize(
    ("config", "verdict"),
    [("a = 1\n", CheckVerdict.APPLIES), ("x = 1\n", CheckVerdict.ANCHOR_DRIFT)],
)
def test_the_catalogue_is_checked_against_a_vllm_by_its_path(
    tmp_path: Path, config: str, verdict: CheckVerdict
) -> None:
    place = vllm(tmp_path / "place", config)

    async def work(desk: Desk) -> None:
        page = await desk.services.check(PatchQuery(vllm=str(place)))
        assert (page.vllm, page.source) == ("0.32.0", str(place))
        assert page.checks[0].verdict is verdict
        assert page.checks[0].needed_by == ("two",)

    at_a_desk(tmp_path, work)


def test_a_check_without_any_vllm_says_how_to_get_one(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        for asked in (None, "0.32.0", "0.1.0", str(tmp_path / "nowhere")):
            with pytest.raises(HostError) as raised:
                await desk.services.check(PatchQuery(vllm=asked))
            assert raised.value.reason is Reason.NOT_FOUND
            assert raised.value.problem.fix is not None

    at_a_desk(tmp_path, work)


def test_the_detail_has_the_diff_as_it_is_in_that_vllm(tmp_path: Path) -> None:
    place = vllm(tmp_path / "place", "before = 0\na = 1\n")

    async def work(desk: Desk) -> None:
        detail = await desk.services.detail("one", PatchQuery(vllm=str(place)))
        assert detail.vllm == "0.32.0"
        assert detail.patch.id == "one"
        assert detail.check is not None
        assert detail.check.verdict is CheckVerdict.APPLIES
        (operation,) = detail.operations
        assert " before = 0" in operation.diff.splitlines()
        assert "+b = 1" in operation.diff.splitlines()

    at_a_desk(tmp_path, work)


def test_the_detail_without_any_vllm_is_what_the_patch_says_of_itself(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        detail = await desk.services.detail("one", PatchQuery())
        assert (detail.vllm, detail.check) == (None, None)
        assert "+b" in detail.operations[0].diff.splitlines()
        with pytest.raises(HostError) as raised:
            await desk.services.detail("one", PatchQuery(vllm="0.32.0"))
        assert raised.value.reason is Reason.NOT_FOUND
        with pytest.raises(HostError) as raised:
            await desk.services.detail("onee", PatchQuery())
        assert raised.value.reason is Reason.PATCH_UNKNOWN

    at_a_desk(tmp_path, work)


def test_questions_at_the_same_time_are_all_answered(tmp_path: Path) -> None:
    place = vllm(tmp_path / "place")

    async def work(desk: Desk) -> None:
        pages = await asyncio.gather(*(desk.services.check(PatchQuery(vllm=str(place))) for _ in range(8)))
        assert len({page.checks for page in pages}) == 1

    at_a_desk(tmp_path, work)


def test_a_plan_says_its_patches_and_llamacpp_has_none(tmp_path: Path) -> None:
    planned = PlannedPatches(digest="d", chosen=("one",))

    async def vllm_plan(desk: Desk) -> None:
        assert await desk.services.plan(LaunchRequest(model="m")) == planned

    async def other_plan(desk: Desk) -> None:
        with pytest.raises(HostError) as raised:
            await desk.services.plan(LaunchRequest(model="m"))
        assert raised.value.reason is Reason.UNSUPPORTED
        assert "llama.cpp" in raised.value.problem.message

    at_a_desk(tmp_path / "a", vllm_plan, planned)
    at_a_desk(tmp_path / "b", other_plan)
