"""The program's life: window first, then the engine host, and an orderly end whatever ends it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from engine_host.protocol.language import tr

os.environ.setdefault("QT_API", "pyside6")

from PySide6.QtCore import Qt, QTimer

from engine_host import __version__
from engine_host.client import CrashMark, Folders, marked, refuse_core_dumps, take_crashes
from sndr_gui.host.notices import Notices
from sndr_gui.host.process import HostProcess, HostStartFailed
from sndr_gui.host.tasks import Tasks
from sndr_gui.kit import theme
from sndr_gui.kit.language import translate_qt
from sndr_gui.kit.look.choices import SCALE_VARIABLE, scale_factor
from sndr_gui.kit.look.level import Level
from sndr_gui.kit.loop.application import Application, what_failed
from sndr_gui.kit.loop.garbage import GarbageCollection
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.kit.single_window import AT_LOGIN, Claim, Handover, links_of
from sndr_gui.views.window.main import Window

if TYPE_CHECKING:
    from sndr_gui.host.connection import HostConnection

_SECONDS_BETWEEN = 5.0
_LOOKED_AT = Qt.ApplicationState.ApplicationActive


def main(arguments: list[str], folders: Folders, process: HostProcess, claim: Claim | None = None) -> int:
    """Run the window until it is closed; the exit code. With a claim it takes the links of later starts."""
    from sndr_gui.kit.loop.coroutines import EventLoop

    refuse_core_dumps()
    file = SettingsFile(folders.config / "window.json")
    # Qt reads it once, when it starts; what the window starts, and asks for, has its own.
    given = os.environ.get(SCALE_VARIABLE)
    if (factor := scale_factor(file.current.scale, os.environ)) is not None:
        os.environ[SCALE_VARIABLE] = factor
    app = Application([sys.argv[0], *arguments])
    os.environ.pop(SCALE_VARIABLE, None)
    if given is not None:
        os.environ[SCALE_VARIABLE] = given
    app.setQuitOnLastWindowClosed(False)
    app.setApplicationName("sndr")
    app.setApplicationDisplayName("SNDR Control Center")
    app.setDesktopFileName("sndr")
    translate_qt(app)
    theme.setup(app, file.current.look)
    loop = EventLoop(app)
    asyncio.set_event_loop(loop)
    with loop, marked(folders.crashes, "window", __version__) as mark:
        loop.run_until_complete(_run(app, folders, process, file, arguments, claim, mark))
    return 0


async def _run(
    app: Application,
    folders: Folders,
    process: HostProcess,
    file: SettingsFile,
    arguments: list[str],
    claim: Claim | None,
    mark: CrashMark | None,
) -> None:
    done = asyncio.Event()
    app.quit_wanted = done.set
    garbage = GarbageCollection(app)
    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, done.set)
    notices = Notices()
    report = Report(notices, mark)
    tasks = Tasks(report)
    # What fails in an answer to a click, or in drawing, ends there: Qt goes on, and so does the window.
    sys.excepthook = report.hook(sys.excepthook)
    app.failed = report.of_event
    if file.is_new:
        # Where nobody has chosen, the pages begin with what most people need.
        file.current = replace(file.current, level=Level.SIMPLE)
    window = Window(file, notices)
    painted = asyncio.Event()
    window.painted.connect(painted.set)
    window.closing.connect(done.set)
    if AT_LOGIN in arguments:
        # There is always a way back: an icon of the taskbar, where a tray may be missing.
        window.showMinimized()
        # Nothing of it is painted before somebody wants to see it.
        painted.set()
    else:
        window.show()
    if claim is not None:
        await _listen(claim, window)
    window.open_links(links_of(arguments))
    if "SNDR_E2E_INSPECT" in os.environ:
        from sndr_gui.views.window import inspection

        inspection.watch()
    # The host starts while the window paints; the connection then finds it.
    early = tasks.start(_start_early(process), "start the engine host")
    await painted.wait()
    if "--say-ready" in arguments:
        _say("painted")
    if file.damage is not None:
        from sndr_gui.views.settings.damaged_window import tell

        tell(window, file, notices)
    # 0.4 s of imports that the first picture does not need.
    await asyncio.to_thread(importlib.import_module, "sndr_gui.views.window.context")
    from sndr_gui.host.connection import HostConnection
    from sndr_gui.host.session import Session
    from sndr_gui.host.state import HostState
    from sndr_gui.kit.desktop.notifications import Notifications
    from sndr_gui.kit.resources import resource
    from sndr_gui.models.settings.at_login import PresetAtLogin
    from sndr_gui.models.settings.captions import use_captions
    from sndr_gui.models.settings.page import save_window_settings
    from sndr_gui.models.window.desktop_notices import DesktopNotices
    from sndr_gui.views.first_run.opener import FirstRunOpener
    from sndr_gui.views.leaving.tray import Tray
    from sndr_gui.views.window.context import PageContext

    use_captions()
    state = HostState()
    connection = HostConnection(state, process)
    session = Session(state, connection, tasks, notices)
    context = PageContext(session, file, window.go)
    window.attach(context)
    tray = Tray(window, context.home, lambda: window.take_over(Handover()))
    context.settings.changed.connect(lambda: tray.set_wanted(file.current.tray))
    tray.set_wanted(file.current.tray)
    desktop = Notifications(resource("icons", "sndr.svg"), tr("Show the window"))
    desktop.clicked = DesktopNotices(
        session,
        desktop.show,
        lambda: file.current.desktop_notices and app.applicationState() != _LOOKED_AT,
        lambda token: window.take_over(Handover(activation=token)),
    ).open
    at_login = PresetAtLogin(session, context.actions, arguments)
    opener = FirstRunOpener(window, context.first_run, context.go)
    if file.is_new:
        # Kept at once: a start that ends before somebody saw it through leaves it to the next one.
        save_window_settings(file, notices.warning, page=window.current, welcome=True)
    if file.current.welcome:
        # What closes with the window was neither finished nor skipped.
        def seen() -> None:
            if not done.is_set():
                save_window_settings(file, notices.warning, welcome=False)

        opener.closed.connect(seen)
        opener.open()
    if crashes := await asyncio.to_thread(take_crashes, folders.crashes):
        from sndr_gui.views.window.crash_report import CrashDialog

        CrashDialog(window, session, crashes).show()
    if "--say-ready" in arguments:
        _say_useful(window, connection)
    running = tasks.start(connection.run(), "connection")
    await done.wait()
    if claim is not None:
        # A start from now on has a window of its own.
        await claim.close()
    save_window_settings(file, notices.warning, geometry=window.geometry_text, page=window.current)
    tray.set_wanted(False)
    at_login.deleteLater()
    window.deactivate()
    for task in (early, running):
        task.cancel()
    await asyncio.gather(early, running, return_exceptions=True)
    # What is under way ends before its connection does: a request that is cut off leaves its socket open.
    await tasks.close()
    await desktop.close()
    await context.fleet.close()
    await connection.close()
    app.quit_wanted = None
    window.deleteLater()
    garbage.stop()


async def _listen(claim: Claim, window: Window) -> None:
    # Without a socket later starts wait for an answer, and say that there is none: no reason to end this one.
    with contextlib.suppress(OSError):
        await claim.listen(window.take_over)


async def _start_early(process: HostProcess) -> None:
    # The connection tries again and tells the person why it fails.
    with contextlib.suppress(HostStartFailed):
        await process.find_or_start()


class Report:
    """Tells the person and the terminal about a task that failed unexpectedly."""

    def __init__(self, notices: Notices, mark: CrashMark | None) -> None:
        self._notices, self._mark = notices, mark
        self._told: dict[str, float] = {}

    def __call__(self, error: BaseException) -> None:
        traceback.print_exception(error)
        if self._mark is not None:
            self._mark.note(error)
        self._say(error)

    def _say(self, error: BaseException) -> None:
        said = tr(
            "Something in the window failed: {what}. The rest works as before; Logs saves diagnostics.",
            what=what_failed(error),
        )
        self._notices.error("defect", said)

    def of_event(self, error: Exception) -> None:
        """Tell of an error in the answer to an event; what fails at each drawing, not each time."""
        place, now = str(traceback.extract_tb(error.__traceback__)[-1:]), time.monotonic()
        if now - self._told.get(place, -_SECONDS_BETWEEN) < _SECONDS_BETWEEN:
            return
        self._told[place] = now
        # The window may be drawing at this moment, and a notice changes what it draws.
        QTimer.singleShot(0, partial(self, error))

    def hook(self, before: Callable[..., object]) -> Callable[..., None]:
        """Return what follows another hook of Python, which prints and keeps the error."""

        def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            before(kind, error, trace)
            if isinstance(error, Exception):
                self._say(error)

        return told


def _say_useful(window: Window, connection: HostConnection) -> None:
    def look() -> None:
        if connection.connected:
            connection.changed.disconnect(look)
            window.repaint()
            _say("useful")

    connection.changed.connect(look)


def _say(event: str) -> None:
    print(json.dumps({"event": event, "seconds": round(_process_age(), 3)}), flush=True)


def _process_age() -> float:
    if sys.platform == "linux":
        # The start in clock ticks since boot; the time of day of boot is only known to a second.
        fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    else:  # noqa: RET505 - the type checker looks at one platform at a time
        import psutil

        return time.time() - psutil.Process().create_time()
