"""Takes a picture of every page in both themes: `python packaging/shots.py [FOLDER]` (or docs/images).

`--size 2560x1440` and `--themes high-contrast` take others, `QT_QPA_PLATFORM=xcb` those of a display, and
`SNDR_LANGUAGE=de` those of another language. It uses
the engine host that runs, or starts one for itself; without an engine it starts the demo model and asks it
something, so that every picture shows what was really measured.
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

from engine_host.protocol.language import chosen_language, install

# Before any module that has texts at its top.
install(chosen_language(os.environ.get("SNDR_LANGUAGE", "en"), os.environ))

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
from sndr_gui.kit.language import translate_qt
from sndr_gui.kit.look.choices import Look, ThemeChoice
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.models.chat.options import Options
from sndr_gui.views.window.context import PageContext
from sndr_gui.views.window.main import Window
from sndr_gui.views.window.pages import PAGES

USUAL = (1280, 820)
QUESTIONS = (
    "Write a list with three short tips for a quiet computer.",
    "What is a list comprehension?",
    "How do I read a file in Python?",
)


async def settle(seconds: float) -> None:
    """Let the window draw what came."""
    await asyncio.sleep(seconds)


async def shoot(window: Window, folder: Path, names: list[str], themes: list[ThemeChoice]) -> list[Path]:
    """A picture of each of these pages in each of these themes; other sizes than usual stand in the name."""
    taken = []
    size = (window.width(), window.height())
    suffix = "" if size == USUAL else f"-{size[0]}x{size[1]}"
    for choice in themes:
        theme.wear(Look(choice))
        for name in names:
            window.go(name)
            await settle(1.2)
            path = folder / f"{name}-{choice.value}{suffix}.png"
            window.grab().save(str(path))
            taken.append(path)
    return taken


async def run(
    folder: Path, names: list[str], fill: bool, themes: list[ThemeChoice], size: tuple[int, int]
) -> None:
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
        window.resize(*size)
        window.show()
        window.attach(pages)
        running = tasks.start(connection.run(), "connection")
        for _ in range(300):
            if connection.connected:
                break
            await settle(0.1)
        if fill:
            await fill_pages(window, pages)
        for path in await shoot(window, folder, names, themes):
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
    parser.add_argument("--themes", default=f"{ThemeChoice.LIGHT},{ThemeChoice.DARK}")
    parser.add_argument("--size", default="x".join(map(str, USUAL)))
    arguments = parser.parse_args()
    themes = [ThemeChoice(name) for name in arguments.themes.split(",")]
    wide, high = map(int, arguments.size.split("x"))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    app = QApplication(sys.argv[:1])
    app.setQuitOnLastWindowClosed(False)
    translate_qt(app)
    theme.setup(app, Look(ThemeChoice.LIGHT))
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    with loop:
        pages = arguments.pages.split(",")
        work = run(arguments.folder, pages, not arguments.as_it_is, themes, (wide, high))
        loop.run_until_complete(work)


if __name__ == "__main__":
    main()
