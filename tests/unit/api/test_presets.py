"""The catalogue over the control API, with the files that ship."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from engine_host.protocol.errors import ErrorAnswer, Problem, Reason
from engine_host.protocol.events import PresetsChangedEvent
from engine_host.protocol.launch.deploy import Rendering
from engine_host.protocol.patches import PatchReason, PlannedPatches
from engine_host.protocol.presets import (
    CatalogPage,
    EditedPreset,
    EntryOrigin,
    ExportedPreset,
    ImportedPreset,
    PresetDetail,
    PresetFile,
    PresetForm,
    PresetLint,
    PresetPage,
    ResolvedPreset,
    SavedPreset,
)
from tests.unit.api.door import Door, door
from tests.unit.asynchronous import run

pytestmark = pytest.mark.usefixtures("home")
T = TypeVar("T", bound=BaseModel)
MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 4096\n"


class Api:
    """The API with its answers read."""

    def __init__(self, opened: Door) -> None:
        self.door = opened
        self.own = opened.rig.folders.config / "presets"

    async def ask(self, method: str, path: str, answer: type[T], **body: Any) -> T:
        got = await self.door.client.request(method, path, json=body or None)
        assert got.status_code == 200, got.text
        return answer.model_validate_json(got.content)

    async def refused(self, method: str, path: str, **body: Any) -> Problem:
        got = await self.door.client.request(method, path, json=body or None)
        assert got.status_code >= 400
        return ErrorAnswer.model_validate_json(got.content).error

    async def save(self, text: str = MINE, digest: str | None = None, name: str = "mine") -> SavedPreset:
        return await self.ask("PUT", f"/v1/presets/{name}", SavedPreset, text=text, digest=digest)

    async def ids(self) -> set[str]:
        page = await self.ask("GET", "/v1/presets", PresetPage)
        return {item.preset.id for item in page.presets}


def through(work: Callable[[Api], Coroutine[Any, Any, None]]) -> None:
    async def act() -> None:
        async with door() as opened:
            await work(Api(opened))

    run(act())


def test_lists_the_catalogue() -> None:
    async def work(api: Api) -> None:
        page = await api.ask("GET", "/v1/presets", PresetPage)
        assert page.faults == ()
        demo = next(item for item in page.presets if item.preset.id == "demo-llamacpp")
        assert (demo.origin, demo.startable, demo.size) == (EntryOrigin.PROGRAM, True, 12611584)
        assert not next(item for item in page.presets if item.preset.engine == "sglang").startable
        catalog = await api.ask("GET", "/v1/catalog", CatalogPage)
        assert {gpu.id for gpu in catalog.hardware} >= {"h200", "rtx-3090"}
        form = await api.ask("GET", "/v1/catalog/form", PresetForm)
        assert "context" in form.settings["properties"]
        assert "extends" in form.variation["properties"]

    through(work)


def test_a_preset_is_shown_with_its_file_and_where_each_setting_is_from() -> None:
    async def work(api: Api) -> None:
        detail = await api.ask("GET", "/v1/presets/demo-llamacpp", PresetDetail)
        assert detail.text.startswith("format: 1\nid: demo-llamacpp\n")
        assert detail.model.id == "sndr-demo"
        context = next(one for one in detail.resolved.settings if one.name == "context")
        assert (context.value, context.by.file) == (8192, "presets/presets/demo-llamacpp.yaml")
        api.door.settings.change({"engine.context": 2048})
        detail = await api.ask("GET", "/v1/presets/demo-llamacpp", PresetDetail)
        context = next(one for one in detail.resolved.settings if one.name == "context")
        assert (context.value, context.by.key) == (2048, "engine.context")
        assert context.by.file == str(api.door.settings.path)
        assert (await api.refused("GET", "/v1/presets/demo-lamacpp")).reason is Reason.NOT_FOUND

    through(work)


def test_resolves_on_hardware() -> None:
    async def work(api: Api) -> None:
        found = await api.ask(
            "POST", "/v1/presets/resolve", ResolvedPreset, preset="qwen3.6-27b-fp8-2x24", hardware="l4"
        )
        assert (found.count, found.conflicts) == (2, ())
        found = await api.ask(
            "POST",
            "/v1/presets/resolve",
            ResolvedPreset,
            preset="qwen3.6-27b-fp8-2x24",
            hardware="l4",
            count=1,
            overrides={"context": 1048576},
        )
        assert {conflict.settings for conflict in found.conflicts} == {("context",), ("tensor_parallel",)}
        assert "preset.gpus" in {finding.id for finding in found.findings}
        found = await api.ask(
            "POST", "/v1/presets/resolve", ResolvedPreset, preset="demo-llamacpp", hardware="here"
        )
        assert (found.hardware, found.count, found.conflicts, found.findings) == (None, 0, (), ())
        found = await api.ask(
            "POST", "/v1/presets/resolve", ResolvedPreset, preset="qwen3.6-27b-q4-24", hardware="here"
        )
        said = {finding.message for finding in found.findings}
        assert "It needs a GPU of 24 GiB; this machine has none." in said
        few = {"preset": "qwen3.6-27b-q4-24", "hardware": "here", "count": 1}
        problem = await api.refused("POST", "/v1/presets/resolve", **few)
        assert problem.message == "This machine has no GPU; a count of 1 was asked for."
        await api.ask("POST", "/v1/patches/plan-preset", PlannedPatches, preset="demo-vllm", hardware="here")
        problem = await api.refused("POST", "/v1/presets/resolve", preset="x", count=9)
        assert problem.evidence["field"] == "count"

    through(work)


def test_a_preset_is_checked_saved_changed_and_removed() -> None:
    async def work(api: Api) -> None:
        checked = await api.ask("POST", "/v1/presets/lint", PresetLint, text=MINE, id="mine")
        assert checked.usable
        assert checked.preset is not None
        assert "+  context: 4096" in checked.diff
        assert not api.own.exists()
        saved = await api.save()
        assert (saved.previous, saved.file) == (None, str(api.own / "mine.yaml"))
        assert (api.own / "mine.yaml").read_text() == MINE
        assert "mine" in await api.ids()
        changed = MINE.replace("4096", "2048")
        checked = await api.ask("POST", "/v1/presets/lint", PresetLint, text=changed, id="mine")
        assert "-  context: 4096\n+  context: 2048" in checked.diff
        saved = await api.save(changed, saved.digest)
        assert saved.previous == MINE
        undone = await api.save(saved.previous or "", saved.digest)
        assert (api.own / "mine.yaml").read_text() == MINE
        assert undone.digest is not None
        removed = await api.ask("DELETE", "/v1/presets/mine", SavedPreset)
        assert removed.previous == MINE
        assert "mine" not in await api.ids()
        assert not (api.own / "mine.yaml").exists()
        assert (await api.refused("DELETE", "/v1/presets/mine")).reason is Reason.NOT_FOUND

    through(work)


def test_changes_are_events() -> None:
    async def work(api: Api) -> None:
        before = api.door.events.seq
        await api.save()
        await api.ask("DELETE", "/v1/presets/mine", SavedPreset)
        assert api.door.events.seq == before + 2
        assert PresetsChangedEvent().kind == "presets.changed"

    through(work)


def test_a_file_that_changed_meanwhile_is_not_lost() -> None:
    async def work(api: Api) -> None:
        saved = await api.save()
        path = api.own / "mine.yaml"
        for digest in (None, "0" * 16):
            problem = await api.refused("PUT", "/v1/presets/mine", text=MINE, digest=digest)
            assert problem.reason is Reason.CONFLICT
        path.write_text(MINE.replace("Mine", "Edited by hand"))
        problem = await api.refused("PUT", "/v1/presets/mine", text=MINE, digest=saved.digest)
        assert "changed meanwhile" in problem.message
        assert "Edited by hand" in path.read_text()
        path.unlink()
        problem = await api.refused("PUT", "/v1/presets/mine", text=MINE, digest=saved.digest)
        assert "removed" in problem.message

    through(work)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file_of_another_system_can_be_changed(mark: str) -> None:
    async def work(api: Api) -> None:
        api.own.mkdir(parents=True)
        path = api.own / "mine.yaml"
        path.write_bytes((mark + MINE.replace("\n", "\r\n")).encode())
        file = await api.ask("GET", "/v1/presets/mine/file", PresetFile)
        assert file.text == MINE.replace("\n", "\r\n")
        saved = await api.save(file.text.replace("4096", "2048"), file.digest)
        assert saved.previous == file.text
        assert path.read_bytes() == file.text.replace("4096", "2048").encode()

    through(work)


def test_a_preset_that_is_kept_elsewhere_is_changed_there(home: Path) -> None:
    async def work(api: Api) -> None:
        kept = home / "dotfiles.yaml"
        kept.write_text(MINE, encoding="utf-8")
        api.own.mkdir(parents=True)
        (api.own / "mine.yaml").symlink_to(kept)
        file = await api.ask("GET", "/v1/presets/mine/file", PresetFile)
        await api.save(file.text.replace("4096", "2048"), file.digest)
        assert (api.own / "mine.yaml").is_symlink()
        assert kept.read_text(encoding="utf-8") == MINE.replace("4096", "2048")

    through(work)


@pytest.mark.parametrize(
    ("name", "text", "reason", "says"),
    [
        ("mine", MINE.replace("context", "contxt"), Reason.PRESET_INVALID, "line 6: settings.contxt"),
        ("mine", MINE.replace("4096", "9000000"), Reason.PRESET_INVALID, "at most 8192"),
        ("mine", "[", Reason.PRESET_INVALID, "line 1"),
        ("mine", MINE.replace("id: mine", "id: other"), Reason.BAD_REQUEST, "for other, not for mine"),
        ("demo-llamacpp", MINE.replace("id: mine", "id: demo-llamacpp"), Reason.PRESET_INVALID, "comes with"),
        ("Mine", MINE, Reason.BAD_REQUEST, "cannot be the id"),
        ("..%2Fmine", MINE, Reason.BAD_REQUEST, "cannot be the id"),
    ],
)
def test_what_cannot_be_used_is_not_saved(name: str, text: str, reason: Reason, says: str) -> None:
    async def work(api: Api) -> None:
        problem = await api.refused("PUT", f"/v1/presets/{name}", text=text)
        assert problem.reason is reason
        assert says in problem.message
        assert not api.own.exists()

    through(work)


def test_the_programs_presets_stay_and_one_that_is_extended_too() -> None:
    async def work(api: Api) -> None:
        problem = await api.refused("DELETE", "/v1/presets/demo-llamacpp")
        assert problem.reason is Reason.CONFLICT
        exported = await api.ask("GET", "/v1/presets/demo-llamacpp/export", ExportedPreset)
        await api.ask("POST", "/v1/presets/import", ImportedPreset, text=exported.text, id="my-demo")
        await api.save(MINE.replace("demo-llamacpp", "my-demo"))
        problem = await api.refused("DELETE", "/v1/presets/my-demo")
        assert "mine extend it" in problem.message

    through(work)


def test_a_broken_file_of_ones_own_is_told_and_can_be_mended() -> None:
    async def work(api: Api) -> None:
        api.own.mkdir(parents=True)
        path = api.own / "mine.yaml"
        path.write_text(MINE.replace("context", "contxt"))
        page = await api.ask("GET", "/v1/presets", PresetPage)
        assert [(fault.file, fault.line) for fault in page.faults] == [(str(path), 6)]
        assert len(page.presets) >= 20
        file = await api.ask("GET", "/v1/presets/mine/file", PresetFile)
        await api.save(MINE, file.digest)
        assert "mine" in await api.ids()
        assert (await api.refused("GET", "/v1/presets/gone/file")).reason is Reason.NOT_FOUND
        broken = MINE.replace("context", "contxt")
        path.write_text(broken)
        removed = await api.ask("DELETE", "/v1/presets/mine", SavedPreset)
        assert removed.previous == broken
        assert not path.exists()
        assert (await api.refused("DELETE", "/v1/presets/mine")).reason is Reason.NOT_FOUND

    through(work)


def test_exported_and_imported_again() -> None:
    async def work(api: Api) -> None:
        await api.save()
        exported = await api.ask("GET", "/v1/presets/mine/export", ExportedPreset)
        same = await api.ask("POST", "/v1/presets/import", ImportedPreset, text=exported.text)
        assert (same.written, len(same.unchanged)) == ((), 4)
        await api.ask("DELETE", "/v1/presets/mine", SavedPreset)
        back = await api.ask("POST", "/v1/presets/import", ImportedPreset, text=exported.text)
        assert back.written == (str(api.own / "mine.yaml"),)
        detail = await api.ask("GET", "/v1/presets/mine", PresetDetail)
        assert detail.variation is not None
        assert detail.variation.settings.context == 4096
        assert detail.base is not None

    through(work)


def test_what_cannot_be_written_leaves_what_was_there() -> None:
    async def work(api: Api) -> None:
        api.own.parent.mkdir(parents=True, exist_ok=True)
        api.own.write_text("in the way")
        problem = await api.refused("PUT", "/v1/presets/mine", text=MINE)
        assert problem.reason is Reason.NOT_WRITABLE
        assert "mine" not in await api.ids()

    through(work)


def test_an_import_is_written_whole_or_not_at_all() -> None:
    async def work(api: Api) -> None:
        exported = await api.ask("GET", "/v1/presets/demo-llamacpp/export", ExportedPreset)
        text = exported.text.replace("id: latency", "id: quick").replace("profile: latency", "profile: quick")
        text = text.replace("id: sndr-demo\n", "id: my-model\n").replace(
            "model: sndr-demo", "model: my-model"
        )
        api.own.mkdir(parents=True)
        (api.own / "profiles").write_text("in the way")
        problem = await api.refused("POST", "/v1/presets/import", text=text, id="mine")
        assert problem.reason is Reason.NOT_WRITABLE
        assert [path.name for path in api.own.rglob("*.yaml")] == []
        (api.own / "profiles").unlink()
        back = await api.ask("POST", "/v1/presets/import", ImportedPreset, text=text, id="mine")
        assert len(back.written) == 3
        assert "mine" in await api.ids()

    through(work)


def test_the_patches_of_a_preset_are_those_of_its_hardware() -> None:
    async def work(api: Api) -> None:
        async def planned(**asked: Any) -> PlannedPatches:
            return await api.ask("POST", "/v1/patches/plan-preset", PlannedPatches, **asked)

        known = await planned(preset="qwen3.6-27b-k8v4-2x24")
        ours = {"turboquant-grouped-attention", "turboquant-spec-graphs", "gdn-prefill-reserve"}
        assert ours <= set(known.chosen)
        assert known.required == ("turboquant-grouped-attention",)
        why = {one.patch: one.reason for one in known.left_out}
        assert why["hopper-flash-attention-3"] is PatchReason.WRONG_GPU
        assert why["draft-head-8-bit"] is PatchReason.NOT_DEFAULT, "a card of 24 GB needs the memory"
        assert why["cpu-refuses-turboquant"] is PatchReason.WRONG_PLATFORM
        hopper = await planned(preset="qwen3.6-27b-k8v4-h200", hardware="h200")
        why = {one.patch: one.reason for one in hopper.left_out}
        assert {"hopper-flash-attention-3", "draft-head-8-bit"} <= set(hopper.chosen)
        assert why["turboquant-boundary-layers"] is PatchReason.NOT_DEFAULT
        other = await api.refused("POST", "/v1/patches/plan-preset", preset="demo-llamacpp")
        assert other.reason is Reason.UNSUPPORTED
        nobody = await api.refused("POST", "/v1/patches/plan-preset", preset="nope")
        assert nobody.reason is Reason.NOT_FOUND

    through(work)


def test_values_are_changed_in_a_text_and_comments_stay() -> None:
    async def work(api: Api) -> None:
        text = MINE.replace("4096", "4096  # enough")
        changes = [
            {"path": ["settings", "context"], "value": 2048},
            {"path": ["summary"], "value": "a: b"},
            {"path": ["settings", "streams"], "remove": True},
        ]
        edited = await api.ask("POST", "/v1/presets/edit", EditedPreset, text=text, changes=changes)
        assert edited.text == text.replace("4096", "2048") + "summary: 'a: b'\n"
        problem = await api.refused("POST", "/v1/presets/edit", text="[", changes=changes)
        assert problem.reason is Reason.PRESET_INVALID
        assert not api.own.exists()

    through(work)


def test_a_lint_tells_what_a_text_says_even_where_it_cannot_be_used() -> None:
    async def work(api: Api) -> None:
        found = await api.ask("POST", "/v1/presets/lint", PresetLint, text=MINE.replace("4096", "many"))
        assert found.preset is None
        assert found.data is not None
        assert found.data["settings"] == {"context": "many"}
        assert (await api.ask("POST", "/v1/presets/lint", PresetLint, text="[")).data is None

    through(work)


def test_others_are_answered_while_a_large_file_is_read() -> None:
    async def work(api: Api) -> None:
        text = (await api.ask("GET", "/v1/presets/demo-llamacpp/export", ExportedPreset)).text
        lines = "".join(f"  k{number}: 1\n" for number in range(6000))
        text = text.replace("\nmodel:\n", f"\n{lines}model:\n", 1)
        reading = asyncio.create_task(api.refused("POST", "/v1/presets/import", text=text, id="mine"))
        waits = []
        while not reading.done():
            began = time.monotonic()
            await api.door.client.get("/v1/version")
            waits.append(time.monotonic() - began)
            await asyncio.sleep(0.02)
        assert (await reading).reason is Reason.PRESET_INVALID
        assert len(waits) > 5
        assert max(waits) < 0.5

    through(work)


def test_many_changes_of_a_large_text_are_refused() -> None:
    async def work(api: Api) -> None:
        text = "a: 1\n" + "# x\n" * 50_000
        changes = [{"path": ["b"], "value": number} for number in range(20)]
        refused = await api.refused("POST", "/v1/presets/edit", text=text, changes=changes)
        assert (refused.reason, refused.evidence["field"]) == (Reason.BAD_REQUEST, "changes")

    through(work)


def test_an_import_that_asks_for_more_needs_consent_to_these_contents() -> None:
    async def work(api: Api) -> None:
        (api.own).mkdir(parents=True, exist_ok=True)
        (api.own / "mine.yaml").write_text(MINE + "  extra_arguments: [--mcp-servers-json, '{}']\n")
        text = (await api.ask("GET", "/v1/presets/mine/export", ExportedPreset)).text
        (api.own / "mine.yaml").unlink()
        got = await api.door.client.post("/v1/presets/import", json={"text": text})
        problem = ErrorAnswer.model_validate_json(got.content).error
        assert (got.status_code, problem.reason) == (403, Reason.CONSENT_NEEDED)
        assert problem.evidence["digest"] == hashlib.sha256(text.encode()).hexdigest()
        (demand,) = problem.evidence["demands"]
        assert demand["what"] == "--mcp-servers-json '{}'"
        assert "Starts programs" in demand["does"]
        await api.ask(
            "POST", "/v1/presets/import", ImportedPreset, text=text, consent=problem.evidence["digest"]
        )
        assert "mine" in await api.ids()
        body = {"launch": {"preset": "mine"}, "target": "docker", "hardware": "l4"}
        problem = await api.refused("POST", "/v1/render", **body)
        assert problem.reason is Reason.CONSENT_NEEDED
        consent = problem.evidence["digest"]
        made = await api.ask("POST", "/v1/render", Rendering, consent=consent, **body)
        assert any("--mcp-servers-json" in file.text for file in made.files)
        await api.ask("POST", "/v1/render", Rendering, **body)

    through(work)


def test_a_check_of_a_text_says_what_it_asks_for() -> None:
    async def work(api: Api) -> None:
        text = MINE + "  extra_arguments: [--log-file, /tmp/x]\n"
        found = await api.ask("POST", "/v1/presets/lint", PresetLint, text=text)
        assert [one.what for one in found.demands] == ["--log-file /tmp/x"]

    through(work)
