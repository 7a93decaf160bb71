"""What is told on the desktop while nobody looks, and that a click leads to it."""

from engine_host.protocol.base import Severity
from engine_host.protocol.engines import EngineState
from engine_host.protocol.events import NoticeEvent
from sndr_gui.models.window.desktop_notices import DesktopNotices, parts
from tests.views.conftest import Stage
from tests.views.samples import host as samples


async def test_engines_alerts_and_work_are_told_while_nobody_looks(stage: Stage) -> None:
    told: list[tuple[str, str]] = []
    front: list[str] = []
    looked_at = [False]

    async def show(key: str, title: str, _text: str) -> bool:
        told.append((key, title))
        return True

    notices = DesktopNotices(stage.session, show, lambda: not looked_at[0], front.append)
    stage.window.go("logs")
    stage.host.set_engine(samples.engine(EngineState.STARTING))
    await stage.until(lambda: stage.state.live)
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: told)
    assert told.pop() == ("engine engine-1", "sndr-demo is ready.")
    assert not any("ready" in one.text for one in stage.window.toasts.shown), "the window shows it by itself"
    notices.open("engine engine-1", "token")
    assert (front, stage.window.current) == (["token"], "engine")

    stage.host.publish(NoticeEvent(key="alert disk /", severity=Severity.WARNING, text="The disk is full. x"))
    await stage.until(lambda: told)
    assert told.pop() == ("alert disk /", "The disk is full.")
    notices.open("alert disk /")
    assert stage.window.current == "home"

    stage.notices.error("save", "It could not be saved.")
    stage.host.set_engine(samples.engine(EngineState.FAILED))
    await stage.until(lambda: told)
    assert told[0][0] == "engine engine-1"
    assert told[0][1].startswith("sndr-demo failed.")
    assert len(told) == 1, "what leads nowhere is for those who look"
    looked_at[0] = True
    stage.notices.info("job", "It is done.", opens=lambda: None)
    await stage.until(lambda: any(one.key == "job" for one in stage.window.toasts.shown))
    assert len(told) == 1


def test_the_first_sentence_is_the_title() -> None:
    assert parts("qwen is ready.") == ("qwen is ready.", "")
    assert parts("Built: done after 3.5 s. Use `sndr run`.") == ("Built: done after 3.5 s.", "Use sndr run.")
    long = "x" * 150
    assert parts(long) == ("x" * 99 + "…", long)
