"""Launch with vLLM: fields of the engine that runs, environments, patches of a start, and how it ended."""

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine_host.protocol.engines import EngineState, InstallationPage, Verification
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import JobDoneEvent, ServersChangedEvent
from engine_host.protocol.jobs import JobState
from sndr_gui.views.engine.installations import RemoveDialog
from sndr_gui.views.launch.page import LaunchView
from tests.views.conftest import Stage
from tests.views.samples import host as samples

PLANS = "/v1/plans"


async def page(stage: Stage, model: str = "qwen-checkpoint", present: bool = True) -> LaunchView:
    """Launch with this model chosen."""
    stage.host.plan = samples.vllm_plan()
    stage.host.installations = samples.installations(present)
    stage.state.set_models(samples.vllm_models())
    stage.pages.installations.load()
    await stage.until(lambda: stage.pages.installations.page == stage.host.installations)
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    view.model.select(model)
    if present:
        await stage.until(lambda: view.model.plan is not None and not view.model.planning)
    return view


def asked(stage: Stage) -> dict[str, object]:
    """The newest launch request, without what was left open."""
    body: dict[str, object] = stage.host.sent("POST", PLANS)[-1]
    return body


async def test_a_checkpoint_shows_the_fields_of_vllm_and_a_gguf_those_of_llama_cpp(stage: Stage) -> None:
    view = await page(stage)
    assert "runs on vLLM" in view.about.about.text()
    assert view.form.shown() == [
        "installation",
        "kv_cache_gib",
        "eager",
        "speculation",
    ]
    assert not view.form.server.isVisible()
    view.form.more.click()
    assert "prefix_caching" in view.form.shown()
    assert "tensor_parallel" not in view.form.shown(), "the CPU build has no GPUs to share"
    view.model.select("big-shape")
    assert "config without weights" in view.about.about.text()
    assert view.form.environment.isVisible()
    view.model.select("sndr-demo")
    assert {"server", "threads"} < set(view.form.shown())
    assert not {"eager", "installation"} & set(view.form.shown())
    assert view.sizes.boxes["kv_type_k"].isVisible()
    assert view.sizes.boxes["kv_type_v"].isVisible()
    assert not view.sizes.boxes["kv_cache_dtype"].isVisible()


async def test_nothing_of_the_other_engine_is_sent(stage: Stage) -> None:
    view = await page(stage, "sndr-demo")
    kind = view.sizes.boxes["kv_type_k"]
    kind.setCurrentIndex(kind.findData("q8_0"))
    view.form.server.setCurrentIndex(view.form.server.findData("prebuilt"))
    await stage.until(lambda: asked(stage)["overrides"]["kv_type_k"] == "q8_0")  # type: ignore[index]
    assert asked(stage)["server"] == "prebuilt"
    view.model.select("qwen-checkpoint")
    view.form.box("speculation").setCurrentIndex(view.form.box("speculation").findData("mtp"))
    eager = view.form.box("eager")
    eager.setCurrentIndex(eager.findData(False))
    await stage.until(lambda: asked(stage)["overrides"]["eager"] is False)  # type: ignore[index]
    given = {name: value for name, value in asked(stage)["overrides"].items() if value}  # type: ignore[attr-defined]
    assert given == {"speculation": "mtp"}
    assert asked(stage)["server"] == "auto"
    assert asked(stage)["model"] == "qwen-checkpoint"


async def test_draft_tokens_are_asked_for_while_something_drafts(stage: Stage) -> None:
    view = await page(stage)
    box = view.form.box("speculation")
    assert [box.itemData(place) for place in range(box.count())] == [None, "off", "mtp", "ngram"]
    box.setCurrentIndex(box.findData("ngram"))
    assert "draft_tokens" in view.form.shown()
    QTest.keyClicks(view.form._number("draft_tokens").edit, "5")
    await stage.until(lambda: asked(stage)["overrides"]["draft_tokens"] == 5)  # type: ignore[index]
    box.setCurrentIndex(box.findData("off"))
    await stage.until(lambda: asked(stage)["overrides"]["draft_tokens"] is None)  # type: ignore[index]


async def test_without_vllm_a_card_installs_it_and_the_plan_follows(stage: Stage) -> None:
    view = await page(stage, present=False)
    assert view.install.isVisible()
    assert view.install.entry is not None
    assert "not installed" in view.install.heading.text()
    assert "to download" in view.install.entry.about.text()
    assert (
        view.install.equivalent_command.label.text()
        == "sndr engine install vllm --version 0.32.0 --build cpu"
    )
    assert not view.start.start.isEnabled()
    assert not view.plan.isVisible()
    assert not [body for body in stage.host.sent("POST", PLANS) if body["model"] == "qwen-checkpoint"]
    QTest.mouseClick(view.install.entry.install, Qt.MouseButton.LeftButton)
    entry = view.install.entry
    await stage.until(entry.job.isVisible)
    assert "Step 3 of 6: Install the packages" in entry.job._step.text()
    assert not entry.install.isEnabled()
    stage.host.installations = samples.installations()
    done = samples.install_job("0.32.0-cpu", state=JobState.DONE)
    stage.host.publish(JobDoneEvent(job=done))
    stage.host.publish(ServersChangedEvent())
    await stage.until(lambda: view.model.plan is not None)
    assert not view.install.isVisible()
    assert view.plan.isVisible()


async def test_an_install_can_be_cancelled_and_one_that_failed_says_why(stage: Stage) -> None:
    view = await page(stage, present=False)
    assert view.install.entry is not None
    entry = view.install.entry
    entry.install.click()
    await stage.until(entry.job.isVisible)
    entry.job.cancel.click()
    await stage.until(lambda: ("DELETE", "/v1/jobs/job-0.32.0-cpu", None) in stage.host.received)
    problem = Problem(reason=Reason.DISK_FULL, message="The disk has 2 GiB left.")
    failed = samples.install_job("0.32.0-cpu", state=JobState.FAILED).model_copy(update={"error": problem})
    stage.host.publish(JobDoneEvent(job=failed))
    await stage.until(lambda: "2 GiB left" in entry.job._step.text())
    assert entry.install.isEnabled()


async def test_a_chosen_environment_that_is_absent_is_offered(stage: Stage) -> None:
    view = await page(stage)
    box = view.form.environment
    labels = [box.itemText(place) for place in range(box.count())]
    assert labels == [
        "Automatic (0.32.0 · CPU)",
        "vLLM 0.32.0 · CPU",
        "vLLM 0.32.0 · CUDA  ·  not installed",
    ]
    box.setCurrentIndex(2)
    assert view.install.isVisible()
    assert "CUDA" in view.install.heading.text()
    assert "gpu_memory" in view.form.shown()
    box.setCurrentIndex(1)
    await stage.until(lambda: asked(stage)["installation"] == "0.32.0-cpu")
    assert not view.install.isVisible()


async def test_patches_of_a_start_say_why_and_can_be_left_out(stage: Stage) -> None:
    view = await page(stage)
    patches = view.plan.patches
    assert patches.summary.text() == "3 patches in, 2 left out"
    assert not patches.ticks["P0001"].isVisible()
    patches.open.click()
    await stage.until(lambda: "Sample patch 1" in patches.ticks["P0001"].accessibleName())
    lines = {line.patch: line for line in view.model.patch_lines()}
    assert lines["P0004"].why == "it is for other GPUs (no GPU)"
    assert not patches.ticks["P0004"].isEnabled(), "nobody can choose another GPU here"
    assert not patches.ticks["P0003"].isEnabled(), "a required patch stays"
    patches.ticks["P0001"].click()
    await stage.until(lambda: asked(stage)["patches"]["off"] == ["P0001"])  # type: ignore[index]
    patches.ticks["P0005"].click()
    await stage.until(lambda: asked(stage)["patches"]["on"] == ["P0005"])  # type: ignore[index]
    stage.host.refuse[PLANS] = Problem(reason=Reason.PATCH_CONFLICT, message="They exclude each other.")
    patches.ticks["P0002"].click()
    await stage.until(lambda: view.model.problem is not None)
    assert patches.isVisible(), "what was left out can be put back"
    assert not patches.ticks["P0002"].isChecked()
    stage.host.refuse.clear()
    patches.ticks["P0002"].click()
    await stage.until(lambda: asked(stage)["patches"]["off"] == ["P0001"])  # type: ignore[index]


async def test_a_start_ends_with_the_way_to_the_chat(stage: Stage) -> None:
    view = await page(stage)
    view.start.start.click()
    await stage.until(lambda: view.model.watch.starting is not None)
    verified = Verification(model_listed=True, token_generated=True, ready_after=42.0)
    stage.host.set_engine(samples.engine(EngineState.READY, verified=verified))
    await stage.until(view.outcome.ready.isVisible)
    assert view.outcome.ready_text.text() == "sndr-demo: ready after 42.0 s."
    view.outcome.chat.click()
    assert stage.window.current == "chat"


async def test_a_start_that_failed_says_why_and_tries_again(stage: Stage) -> None:
    view = await page(stage)
    view.start.start.click()
    await stage.until(lambda: view.model.watch.starting is not None)
    stage.host.set_engine(samples.engine(EngineState.FAILED))
    await stage.until(view.outcome.failure.isVisible)
    assert "weights" in view.outcome.failure._what.text()
    before = len(stage.host.sent("POST", "/v1/engines"))
    view.outcome.again.click()
    await stage.until(lambda: len(stage.host.sent("POST", "/v1/engines")) > before)


async def test_small_window_shows_the_install_card_whole(stage: Stage) -> None:
    stage.window.resize(900, 600)
    view = await page(stage, present=False)
    stage.window.grab()
    inside = view.install.parentWidget()
    assert inside is not None
    area = inside.parentWidget()
    assert area is not None
    assert inside.width() <= area.width(), "nothing is cut off at the right"


async def test_small_window_shows_the_form_of_vllm_whole(stage: Stage) -> None:
    stage.window.resize(900, 600)
    view = await page(stage)
    view.plan.patches.open.click()
    view.form.more.click()
    stage.window.grab()
    inside = view.form.parentWidget()
    assert inside is not None
    area = inside.parentWidget()
    assert area is not None
    assert inside.width() <= area.width(), "nothing is cut off at the right"


async def test_settings_list_environments_and_ask_before_a_removal(stage: Stage) -> None:
    stage.window.go("settings")
    card = stage.window.page.vllm  # type: ignore[attr-defined]
    await stage.until(lambda: len(card.rows) == 2)
    here, absent = card.rows["0.32.0-cpu"], card.rows["0.32.0-cuda"]
    assert (here.state.text(), absent.state.text()) == ("installed", "not installed")
    assert "repaired: torchvision, metadata" in here.about.text()
    assert not absent.remove.isVisible()
    here.remove.click()
    dialog = here.findChild(RemoveDialog)
    assert dialog is not None
    dialog.stay.click()
    assert not stage.host.sent("DELETE", "/v1/installations/0.32.0-cpu")
    here.remove.click()
    dialog = [found for found in here.findChildren(RemoveDialog) if found.isVisible()][-1]
    dialog.remove.click()
    await stage.until(lambda: stage.host.sent("DELETE", "/v1/installations/0.32.0-cpu"))
    await stage.until(here.job.isVisible)
    absent.install.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/installations/0.32.0-cuda"))


async def test_an_environment_in_use_is_not_removed_and_a_damaged_one_says_so(stage: Stage) -> None:
    problem = Problem(reason=Reason.ENGINE_UNUSABLE, message="The environment is damaged.")
    damaged = samples.installation("cuda", present=False, problem=problem)
    pages = samples.installations()
    stage.host.installations = pages.model_copy(update={"installations": (damaged, pages.installations[1])})
    stage.host.set_engine(samples.engine(EngineState.READY, plan=samples.vllm_plan()))
    await stage.until(lambda: stage.state.running is not None)
    stage.pages.installations.load()
    stage.window.go("settings")
    card = stage.window.page.vllm  # type: ignore[attr-defined]
    await stage.until(lambda: card.rows and card.rows["0.32.0-cuda"].state.text() == "damaged")
    assert card.rows["0.32.0-cuda"].install.text() == "Install again"
    assert card.rows["0.32.0-cuda"].problem.isVisible()
    assert card.rows["0.32.0-cpu"].state.text() == "running"
    assert not card.rows["0.32.0-cpu"].remove.isEnabled()


async def test_settings_show_what_cut_off_work_left_and_what_another_host_changes(stage: Stage) -> None:
    stage.window.go("settings")
    card = stage.window.page.vllm  # type: ignore[attr-defined]
    absent: dict[str, Any] = {"present": False, "size": None, "path": "", "installed_at": None}
    left = samples.installation(**absent, leftover=3 * 2**29)
    changing = samples.installation("cuda", **absent, changing=True)
    stage.host.installations = InstallationPage(seq=0, installations=(left, changing))
    stage.pages.installations.load()
    await stage.until(lambda: stage.pages.installations.page == stage.host.installations)
    row = card.rows["0.32.0-cpu"]
    assert "1.5 GiB left by an interrupted install" in row.about.text()
    assert (row.remove.isEnabled(), row.install.isEnabled()) == (True, True)
    row = card.rows["0.32.0-cuda"]
    assert row.state.text() == "changing"
    assert not row.install.isEnabled()
