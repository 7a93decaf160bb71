"""The Qt loop for coroutine tests, and a window over a fake host; anything left running fails the test."""

import asyncio
import gc
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from engine_host.client import Folders
from sndr_gui.host.connection import HostConnection
from sndr_gui.host.notices import Notices
from sndr_gui.host.process import HostProcess
from sndr_gui.host.session import Session
from sndr_gui.host.state import HostState
from sndr_gui.host.tasks import Tasks
from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import Look, ThemeChoice
from sndr_gui.kit.loop.coroutines import EventLoop
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.views.window.context import PageContext
from sndr_gui.views.window.main import Window
from sndr_gui.views.window.pages import PAGES
from tests.views.fakes.host import FakeHost

LIMIT = 60.0
# The page that is there before a test of another one goes to its own: the one that is made soonest.
SMALLEST = "routes"


class Stage:
    """A window, its session, and the fake host behind it."""

    def __init__(self, folder: Path, first_page: str = "home") -> None:
        folders = Folders.resolve()
        self.host = FakeHost(folders.run)
        self.errors: list[BaseException] = []
        self.tasks = Tasks(self.errors.append)
        self.notices = Notices()
        self.state = HostState()
        # A host that cannot start: what these tests need is the one that the test controls.
        self.process = HostProcess(folders, ["/bin/false"])
        self.connection = HostConnection(self.state, self.process)
        self.session = Session(self.state, self.connection, self.tasks, self.notices)
        self.file = SettingsFile(folder / "window.json")
        if first_page != "home":
            self.file.write(replace(self.file.current, page=first_page))
        self.window = Window(self.file, self.notices)
        self.pages = PageContext(self.session, self.file, self.window.go)

    async def open(self, connect: bool = True) -> None:
        """Show the window, joined to the fake host."""
        if connect:
            await self.host.start()
        self.window.resize(1280, 820)
        self.window.show()
        self.window.attach(self.pages)
        self.running = self.tasks.start(self.connection.run(), "connection")
        if connect:
            await self.until(lambda: self.connection.connected)

    async def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until something is true, and what follows from it at once is done: a page shows it."""
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - what is waited for has no event to offer
                await asyncio.sleep(0.01)
        for _ in range(3):
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Close everything, and fail on an error that no one handled."""
        self.window.deactivate()
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self.tasks.close()
        await self.pages.fleet.close()
        await self.connection.close()
        await self.host.stop()
        self.window.deleteLater()
        # Not `processEvents`: what a nested loop was asked to delete later it puts off, and windows pile up.
        await asyncio.sleep(0)
        assert not self.errors, self.errors
        assert not self.host.faults, self.host.faults


@asynccontextmanager
async def opened(folder: Path, connect: bool = True) -> AsyncIterator[Stage]:
    """A stage that is closed at the end."""
    stage = Stage(folder)
    await stage.open(connect)
    try:
        yield stage
    finally:
        await stage.close()


@pytest.fixture(autouse=True, scope="package")
def garbage() -> Iterator[None]:
    """Collect garbage in this thread alone, between tests, as `sndr_gui.kit.loop.garbage` does."""
    gc.collect()
    gc.disable()
    yield
    # What is left of a window is no work for another test: its threads would collect it, and end the process.
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def dressed(qapp: QApplication) -> QApplication:
    """The application with the program's style and fonts, which are set once at a start."""
    theme.setup(qapp, Look(ThemeChoice.LIGHT))
    qapp.setQuitOnLastWindowClosed(False)
    return qapp


@pytest.fixture
def loop(dressed: QApplication, request: pytest.FixtureRequest) -> Iterator[EventLoop]:
    """The Qt event loop; leaked tasks, timers and unhandled errors fail the test."""
    # Another test may have chosen another look.
    theme.wear(Look(ThemeChoice.LIGHT))
    made = EventLoop(dressed)
    asyncio.set_event_loop(made)
    errors: list[dict[str, Any]] = []
    made.set_exception_handler(lambda _loop, context: errors.append(context))
    yield made
    pending = [task for task in asyncio.all_tasks(made) if not task.done()]
    made.run_until_complete(made.shutdown_asyncgens())
    made.run_until_complete(made.shutdown_default_executor())
    made.close()
    asyncio.set_event_loop(None)
    # The test holds its stage until its very end, and what is alive is frozen before that, for good.
    request.node.funcargs.clear()
    gc.collect()
    ticking = [
        timer
        for timer in shiboken6.getAllValidWrappers()
        if isinstance(timer, QTimer) and timer.isActive() and not timer.isSingleShot()
    ]
    # What is alive now stays for more than a test: the next one looks through what it made itself alone.
    gc.freeze()
    assert not errors, errors
    assert not pending, f"leaked tasks: {pending}"
    assert not ticking, f"leaked timers: {ticking}"


@pytest.fixture
def stage(
    loop: EventLoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Stage:
    """A window that is joined to a fake host while the test runs, of a person without any files.

    Coroutines alone have one: theirs is closed before what is left of it is collected.
    """
    assert inspect.iscoroutinefunction(request.function)
    person = tmp_path / "person"
    person.mkdir()
    monkeypatch.setenv("HOME", str(person))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "OPENCODE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    of_a_page = request.path.parent.name in {page.name for page in PAGES} - {"home"}
    return Stage(tmp_path, SMALLEST if of_a_page else "home")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine tests on the Qt loop, with a limit."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    loop = pyfuncitem.funcargs["loop"]
    assert isinstance(loop, EventLoop)
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def whole() -> None:
        # Opened and closed inside the loop: between two runs of it Qt's events would wake tasks without one.
        stage = arguments.get("stage")
        assert stage is None or isinstance(stage, Stage)
        if stage is not None:
            await stage.open()
        try:
            async with asyncio.timeout(LIMIT):
                await pyfuncitem.obj(**arguments)
        finally:
            if stage is not None:
                await stage.close()

    loop.run_until_complete(whole())
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every coroutine test has the loop."""
    for item in items:
        if not isinstance(item, pytest.Function) or not item.path.is_relative_to(Path(__file__).parent):
            continue
        if inspect.iscoroutinefunction(item.obj) and "loop" not in item.fixturenames:
            item.fixturenames.insert(0, "loop")
