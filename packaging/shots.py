"""Takes a picture of every page in both themes: `python packaging/shots.py [FOLDER]` (or docs/images).

Uses the engine host that runs, or starts one for itself; without an engine it starts the demo model and asks
it something, so that every picture shows what was really measured.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_API", "pyside6")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import qasync
from PySide6.QtWidgets import QApplication

from engine_host.client import Folders
from engine_host.protocol.engines import EngineState
from sndr_gui.host.connection import HostConnection
from sndr_gui.host.notices import Notices
from sndr_gui.host.process import HostProcess
from sndr_gui.host.session import Session
from sndr_gui.host.state import HostState
from sndr_gui.host.tasks import Tasks
from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import Look, ThemeChoice
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.models.chat.options import Options
from sndr_gui.views.window.context import PageContext
from sndr_gui.views.window.main import Window
from sndr_gui.views.window.pages import PAGES

QUESTIONS = (
    "Write a list with three short tips for a quiet computer.",
    "What is a list comprehension?",
    "How do I read a file in Python?",
)


async def settle(seconds: float) -> None:
    """Let the window draw what came."""
    await asyncio.sleep(seconds)


async def shoot(window: Window, folder: Path, names: list[str]) -> list[Path]:
    """A picture of each of these pages in both themes."""
    taken = []
    for choice in (ThemeChoice.LIGHT, ThemeChoice.DARK):
        theme.choose(choice)
        for name in names:
            window.go(name)
            await settle(1.2)
            path = folder / f"{name}-{choice.value}.png"
            window.grab().save(str(path))
            taken.append(path)
    return taken


async def run(folder: Path, names: list[str], fill: bool) -> None:
    """Connect, fill the pages, take the pictures."""
    notices = Notices()
    tasks = Tasks(lambda error: print(f"failed: {error!r}", file=sys.stderr))
    state = HostState()
    connection = HostConnection(state, HostProcess(Folders.resolve()))
    session = Session(state, connection, tasks, notices)
    with tempfile.TemporaryDirectory() as scratch:
        file = SettingsFile(Path(scratch) / "window.json")
        window = Window(file, notices)
        pages = PageContext(session, file, window.go)
        window.resize(1280, 820)
        window.show()
        window.attach(pages)
        running = tasks.start(connection.run(), "connection")
        for _ in range(300):
            if connection.connected:
                break
            await settle(0.1)
        if fill:
            await fill_pages(window, pages)
        for path in await shoot(window, folder, names):
            print(path)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await tasks.close()
        await pages.fleet.close()
        await connection.close()
        window.deleteLater()


async def fill_pages(window: Window, pages: PageContext) -> None:
    """Have an engine run and answer, so that there is something to see."""
    state = pages.session.state
    if state.running is None:
        window.go("home")
        pages.home.start_demo()
    for _ in range(600):
        engine = state.running
        if engine is not None and engine.state in (EngineState.READY, EngineState.BUSY):
            break
        await settle(0.1)
    window.go("monitor")
    window.go("chat")
    pages.chat.set_options(Options(sampling={"max_tokens": 600}))
    for question in QUESTIONS:
        pages.chat.send(question)
        for _ in range(600):
            await settle(0.1)
            if not pages.chat.busy:
                break
        await settle(1.5)


def main() -> None:
    """Read the arguments and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/images"))
    parser.add_argument("--pages", default=",".join(page.name for page in PAGES))
    parser.add_argument("--as-it-is", action="store_true", help="start no engine and ask nothing")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    app = QApplication(sys.argv[:1])
    app.setQuitOnLastWindowClosed(False)
    theme.setup(app, Look(ThemeChoice.LIGHT))
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    with loop:
        work = run(arguments.folder, arguments.pages.split(","), not arguments.as_it_is)
        loop.run_until_complete(work)


if __name__ == "__main__":
    main()
