"""Library in the window: models here, one deleted and brought back, a search, a download, offline."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton

from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import JobDoneEvent, ModelsChangedEvent
from engine_host.protocol.jobs import JobKind, JobState
from sndr_gui.host.notices import Notice
from sndr_gui.views.library.page import LibraryView
from tests.views.conftest import Stage
from tests.views.samples import host as samples
from tests.views.samples import library as made

OFFLINE = Problem(reason=Reason.OFFLINE, message="No request was sent: HF_HUB_OFFLINE is set.")


def library(stage: Stage) -> LibraryView:
    stage.window.go("library")
    page = stage.window.page
    assert isinstance(page, LibraryView)
    return page


def click(pressed: QPushButton) -> None:
    QTest.mouseClick(pressed, Qt.MouseButton.LeftButton)


def words(page: LibraryView) -> str:
    """Return all texts that are shown."""
    return "\n".join(one.text() for one in page.findChildren(QLabel) if one.isVisible())


def named(page: LibraryView, name: str) -> QPushButton:
    """Return the button of this accessible name."""
    return next(one for one in page.findChildren(QPushButton) if one.accessibleName() == name)


def choose(page: LibraryView, model: str) -> None:
    place = page.model.rows.place_of(model)
    assert place is not None
    page.table.selectRow(place)


async def test_models_are_listed_and_one_is_shown_whole(stage: Stage) -> None:
    own = samples.model("own", verified=True, repository="org/own", commit="a" * 40)
    stage.host.models = stage.host.models.model_copy(update={"models": (*stage.host.models.models, own)})
    stage.host.publish(ModelsChangedEvent())
    page = library(stage)
    await stage.until(lambda: page.model.page is not None and page.model.rows.total == 5)
    assert "90 GiB free" in page.subtitle.text()
    choose(page, "own")
    assert "✓ verified" in page.mark.text()
    assert "From org/own at aaaaaaaaaaaa." in page.about.text()
    assert page.command.label.text() == "sndr models remove own"
    choose(page, "qwen3-8b")
    assert page.mark.text().startswith("UNVERIFIED")
    choose(page, "broken")
    assert not page.start.isEnabled()
    assert "before its tensors do" in page.mark.text()
    choose(page, "sndr-demo")
    assert not page.remove.isVisible()
    click(page.start)
    assert stage.window.current == "launch"
    assert stage.host.hub_asked == [], "nobody asked for it"


async def test_a_model_is_deleted_and_brought_back(stage: Stage) -> None:
    page = library(stage)
    await stage.until(lambda: page.model.page is not None)
    said: list[Notice] = []
    page.model.session.notices.posted.connect(said.append)
    choose(page, "qwen3-8b")
    click(page.remove)
    await stage.until(lambda: "qwen3-8b is deleted" in words(page))
    undo = next(one for one in said if one.action_text == "Undo")
    assert undo.action is not None
    undo.action()
    await stage.until(lambda: not page.model.trash)
    page.table.setFocus()
    QTest.keyClick(page.table, Qt.Key.Key_Delete)
    await stage.until(lambda: page.model.trash)
    click(named(page, "Delete for good"))
    await stage.until(lambda: not page.kept.isVisible())
    assert [one.shared for one in stage.host.removed] == [False, False]


async def test_one_of_another_program_asks_once_more(stage: Stage) -> None:
    stage.host.owner = "Hugging Face"
    page = library(stage)
    await stage.until(lambda: page.model.page is not None)
    choose(page, "gemma-4b")
    click(page.remove)
    await stage.until(page.consent.isVisible)
    assert "Hugging Face" in page.consent.text()
    assert page.remove.accessibleName() == "Delete all the same: gemma-4b"
    assert page.command.label.text() == "sndr models remove gemma-4b --shared"
    choose(page, "qwen3-8b")
    assert not page.consent.isVisible(), "the question was about another model"
    choose(page, "gemma-4b")
    click(page.remove)
    await stage.until(page.consent.isVisible)
    click(page.remove)
    await stage.until(lambda: page.model.trash)
    assert [one.shared for one in stage.host.removed] == [False, False, True]


async def test_a_search_leads_to_a_pinned_download(stage: Stage) -> None:
    page = library(stage)
    pane = page.hub
    await stage.until(lambda: page.model.page is not None)
    assert "Nothing is asked before you search" in pane.state.text()
    pane.words.setFocus()
    QTest.keyClicks(pane.words, "model")
    QTest.keyClick(pane.words, Qt.Key.Key_Return)
    await stage.until(pane.found.isVisible)
    assert not pane.open.isEnabled()
    pane.found.selectRow(0)
    assert pane.open.accessibleName() == f"Show the files of {made.NAME}"
    click(pane.open)
    await stage.until(pane.choices.isVisible)
    assert stage.host.hub_asked == ["model", f"{made.NAME}@main"]
    assert made.COMMIT[:12] in pane.of.text()
    assert "5 GiB are to come; /cache/hub has 90 GiB free." in pane.room.text()
    assert pane.command.label.text().endswith("--companion mmproj-F16.gguf")
    (box,) = pane.companions.findChildren(QCheckBox)
    box.click()
    assert "4 GiB are to come" in pane.room.text()
    click(pane.download)
    await stage.until(lambda: stage.host.downloaded)
    (asked,) = stage.host.downloaded
    assert (asked.revision, asked.named, asked.companions) == (made.COMMIT, "main", ())
    await stage.until(lambda: f"Download {made.NAME}" in words(page))
    click(named(page, f"Pause the Download {made.NAME}"))
    await stage.until(lambda: any(path == "/v1/jobs/job-1" for _, path, _ in stage.host.received))


async def test_what_does_not_fit_is_not_downloaded(stage: Stage) -> None:
    stage.host.hub_files = made.files().model_copy(update={"free": made.GIB})
    page = library(stage)
    await stage.until(lambda: page.model.page is not None)
    page.hub.words.setText(made.NAME + "@" + made.COMMIT)
    click(page.hub.search)
    await stage.until(page.hub.room.isVisible)
    assert stage.host.hub_asked == [f"{made.NAME}@{made.COMMIT}"]
    assert "does not fit" in page.hub.room.text()
    assert not page.hub.download.isEnabled()


async def test_a_paused_download_goes_on_or_is_given_up(stage: Stage) -> None:
    problem = Problem(reason=Reason.DOWNLOAD_FAILED, message="It stopped coming.")
    stage.host.downloads = (made.paused().model_copy(update={"problem": problem}),)
    page = library(stage)
    await stage.until(page.kept.isVisible)
    assert "1 GiB of 4 GiB, paused. It stopped coming." in words(page)
    click(named(page, f"Go on with {made.NAME} Q4_K_M"))
    await stage.until(lambda: stage.host.downloaded)
    assert stage.host.downloaded[0] == made.paused().asked
    # Its answer has to be here before the event of its end.
    await stage.until(lambda: page.model.jobs)
    ended = samples.job(JobKind.MODEL_DOWNLOAD, JobState.DONE, title=f"Download {made.NAME}", touches="x")
    stage.host.publish(JobDoneEvent(job=ended))
    await stage.until(lambda: not page.model.jobs)
    click(named(page, f"Give up {made.NAME} Q4_K_M"))
    await stage.until(lambda: not page.kept.isVisible())


async def test_offline_is_a_state(stage: Stage) -> None:
    stage.host.offline = OFFLINE
    page = library(stage)
    await stage.until(lambda: page.model.page is not None)
    for asked in ("qwen", made.NAME):
        page.hub.words.setText(asked)
        click(page.hub.search)
        await stage.until(lambda: page.hub.offline.isVisible() and not page.hub.model.asking)
        assert page.hub.offline.text().startswith("Offline: models that are here work as before.")
        assert not page.hub.problem.isVisible()
    stage.host.offline = None
    page.hub.words.setText("nothing")
    click(page.hub.search)
    await stage.until(lambda: "knows no model for “nothing”" in page.hub.state.text())
    assert not page.hub.offline.isVisible()


async def test_only_the_bundled_model_teaches(stage: Stage) -> None:
    stage.host.models = stage.host.models.model_copy(update={"models": stage.host.models.models[:1]})
    stage.host.publish(ModelsChangedEvent())
    page = library(stage)
    await stage.until(page.teaching.isVisible)
    assert "LM Studio" in page.teaching.text()
    assert page.mark.text().startswith("It is part of the package")
