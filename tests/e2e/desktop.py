"""A display of our own with a window manager, and the real window driven on it by keys and clicks."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine_host.client.sync import ControlClient
from engine_host.core.paths import Folders
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.operations import table as ops
from sndr_gui.views.window.pages import PAGES
from tests import run_packages
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
TITLE = "SNDR Control Center"
RUNNING = {EngineState.READY, EngineState.BUSY}


class Desktop:
    """A display, its window manager, and what acts on it."""

    def __init__(self, display: str, patience: float = 1.0) -> None:
        """`patience`: by how much longer than in a test each state may take to come."""
        self._display = display
        self.patience = patience

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this moment's test, with this display."""
        # Where D-Bus starts a bus for each display that has none, it would outlive the test.
        own = {"DISPLAY": self._display, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
        found = {**os.environ, **run_packages.variables(), **own}
        for name in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY"):
            found.pop(name, None)
        return found

    def do(self, *command: str) -> str:
        """Run a program on this display; what it printed."""
        done = subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=20 * self.patience,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def picture(self, path: Path) -> None:
        """What is on the screen, as a PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.do("import", "-window", "root", str(path))


@contextmanager
def desktop(patience: float = 1.0) -> Iterator[Desktop]:
    """A display that nobody else uses; `patience` is that of the Desktop."""
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1400x900x24", "-nolisten", "tcp", "-noreset"],
        pass_fds=(write,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    manager = None
    try:
        with os.fdopen(read) as answer:
            display = f":{answer.readline().strip()}"
        made = Desktop(display, patience)
        manager = subprocess.Popen(
            ["openbox", "--sm-disable"],
            env=made.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        yield made
    finally:
        for process in (manager, server):
            if process is not None:
                process.terminate()
                process.wait(10)


class Gui:
    """The window as its user has it: sees what is shown, clicks and types."""

    def __init__(self, process: "subprocess.Popen[bytes]", desktop: Desktop, seen: Path) -> None:
        self.process = process
        self.desktop = desktop
        self._seen = seen

    def look(self) -> list[dict[str, Any]]:
        """Every widget that is shown now."""
        self._seen.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        self._wait(self._seen.exists, 20, lambda: "the window does not answer")
        found = json.loads(self._seen.read_text(encoding="utf-8"))
        assert isinstance(found, list)
        return found

    def find(self, name: str) -> dict[str, Any] | None:
        """The shown widget with this accessible name."""
        for widget in self.look():
            if widget["name"] == name and widget["area"][2] > 2 and widget["area"][3] > 2:
                return widget
        return None

    def says(self, words: str) -> bool:
        """Whether these words stand anywhere in the window."""
        return any(words in widget["text"] for widget in self.look())

    def wait_for(self, name: str, seconds: float = 20.0) -> dict[str, Any]:
        """The widget with this accessible name once it is shown and can be used."""
        seen: list[dict[str, Any]] = []

        def there() -> bool:
            widget = self.find(name)
            if widget is not None and widget["enabled"]:
                seen.append(widget)
            return bool(seen)

        self._wait(there, seconds, lambda: f"{name!r} is not there, or cannot be used; {self._summary()}")
        return seen[0]

    def wait_until_shown(self, name: str, seconds: float = 20.0) -> None:
        """Wait for a widget that is shown and may be out of use, such as Send without a message."""
        self._wait(
            lambda: self.find(name) is not None, seconds, lambda: f"{name!r} is not shown; {self._summary()}"
        )

    def wait_until_gone(self, name: str, seconds: float = 20.0) -> None:
        """Wait until no widget with this name is shown."""
        self._wait(
            lambda: self.find(name) is None, seconds, lambda: f"{name!r} is still shown; {self._summary()}"
        )

    def wait_for_words(self, words: str, seconds: float = 20.0) -> None:
        """Wait until these words stand in the window."""
        self._wait(lambda: self.says(words), seconds, lambda: f"{words!r} is not said; {self._summary()}")

    def click(self, name: str, seconds: float = 20.0) -> float:
        """Click the middle of a widget; when it was clicked."""
        x, y, width, height = self.wait_for(name, seconds)["area"]
        self.desktop.do(
            "xdotool", "mousemove", "--sync", str(x + width // 2), str(y + height // 2), "click", "1"
        )
        return time.monotonic()

    def press(self, *keys: str) -> None:
        """Press keys, such as ctrl+3."""
        self.desktop.do("xdotool", "key", "--clearmodifiers", *keys)

    def tab_to(self, name: str, most: int = 90) -> None:
        """Go to a control with the Tab key alone."""
        for _ in range(most):
            focused = next((one["name"] for one in self.look() if one["focus"]), "")
            if focused == name:
                return
            self.press("Tab")
        raise AssertionError(f"{name!r} is not reached by Tab; {self._summary()}")

    def open(self, page: str) -> None:
        """Go to a page with its keys."""
        self.press(next(entry.shortcut.lower() for entry in PAGES if entry.title == page))

    def type(self, text: str) -> None:
        """Type text where the focus is."""
        self.desktop.do("xdotool", "type", "--clearmodifiers", "--delay", "5", text)

    def answers(self) -> list[str]:
        """The texts of the model's messages."""
        return [widget["text"] for widget in self.look() if widget["name"] == "Answer"]

    def close(self) -> int:
        """Close the window as its close button does; the program's exit code."""
        self.desktop.do("wmctrl", "-c", TITLE)
        limit = 20 * self.desktop.patience
        assert wait_until(lambda: self.process.poll() is not None, limit), (
            f"the window has not ended {limit:.0f} s after it was closed"
        )
        return self.process.wait()

    def _wait(self, check: Callable[[], bool], seconds: float, missing: Callable[[], str]) -> None:
        """Wait for a state of the window, and say what is missing when it does not come."""
        limit = seconds * self.desktop.patience
        gone = False

        def over() -> bool:
            nonlocal gone
            gone = self.process.poll() is not None
            return gone or check()

        came = wait_until(over, limit)
        assert not gone, f"the window ended with exit code {self.process.returncode} while it was waited for"
        assert came, f"after {limit:.0f} s {missing()}"

    def _summary(self) -> str:
        texts = [widget["name"] or widget["text"] for widget in self.look()]
        return f"shown: {[text[:60] for text in texts if text]}"


@contextmanager
def window(
    desktop: Desktop,
    home: Path,
    picture: Path,
    program: Sequence[str] = (sys.executable, "-m", "sndr_gui"),
    first_run: bool = False,
) -> Iterator[Gui]:
    """The window, with a host of its own; a picture of the screen is kept when the test fails."""
    # The first run comes by itself only where there are no settings of a window.
    settings = home / "config" / "window.json"
    if not first_run and not settings.exists():
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text('{"on_close": "end"}', encoding="utf-8")
    output = home / "window.out"
    seen = home / "seen.json"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*program, "--say-ready"],
            cwd=home,
            env={**desktop.environment, "SNDR_E2E_INSPECT": str(seen)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    gui = Gui(process, desktop, seen)
    try:
        # It answers signals from its first painting on.
        limit = 60 * desktop.patience
        came = wait_until(lambda: b"painted" in output.read_bytes() or process.poll() is not None, limit)
        told = output.read_text(encoding="utf-8", errors="replace")
        assert process.poll() is None, f"the window ended before it was painted: {told}"
        assert came, f"the window is not painted after {limit:.0f} s: {told}"
        yield gui
        said = output.read_text(encoding="utf-8", errors="replace")
        assert "Traceback" not in said, said
    except BaseException:
        desktop.picture(picture)
        print(output.read_text(encoding="utf-8", errors="replace"))
        raise
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)


def host_client() -> ControlClient:
    """A second client of the window's host."""
    client = ControlClient(Folders.resolve())
    client.connect()
    return client


def running_engine(client: ControlClient) -> Engine | None:
    """The engine that answers requests."""
    for engine in client.call(ops.ENGINES).engines:
        if engine.state in RUNNING:
            return engine
    return None


class EngineGauge:
    """The engine's own figures, read from the engine itself."""

    def __init__(self, engine: Engine) -> None:
        import httpx

        argv = engine.plan.argv
        socket = argv[argv.index("--host") + 1]
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=socket), base_url="http://engine", trust_env=False, timeout=5
        )

    def close(self) -> None:
        """Drop the connection."""
        self._http.close()

    def decoded(self) -> int:
        """Tokens that the slots have generated for what they are at."""
        total = 0
        for slot in self._http.get("/slots").json():
            following = slot.get("next_token") or {}
            if isinstance(following, list):
                following = following[0] if following else {}
            total += int(following.get("n_decoded") or 0)
        return total

    def busy(self) -> bool:
        """Whether a slot works."""
        return any(slot["is_processing"] for slot in self._http.get("/slots").json())

    def generated_total(self) -> float:
        """`llamacpp:tokens_predicted_total`."""
        for line in self._http.get("/metrics").text.splitlines():
            if line.startswith("llamacpp:tokens_predicted_total "):
                return float(line.split()[1])
        raise AssertionError("the engine does not count its tokens")
