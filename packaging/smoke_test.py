"""The frozen program as its user has it: `smoke_test.py FOLDER` with the folder that holds sndr and sndr-gui.

Under a display of its own: the command line, the window with an answer of the bundled model, the same by
commands, an engine whose host is killed, and at the end nothing that still runs. Each line that is printed
was seen. It waits for states and not for seconds: a machine that is busy takes as long as it needs, and what
does not come within ten minutes is named, with what runs then. With `--root ROOT --user NAME` FOLDER lies in
another root, and all of it runs there as that user.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from tests.e2e.desktop import Desktop, desktop, window

# What takes a moment is given ten minutes; the window's own waits, of 20 s and more, as much.
LIMIT = 600.0
PATIENCE = 30.0
QUESTION = "What does the json module do?"
# Not of the person's own settings, engines and models, and not of the environment that this script runs in.
LEFT_OUT = ("SNDR_", "XDG_", "PYTHON", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "QT_")


class Program:
    """The program in its folder, here or in another root."""

    def __init__(self, folder: str, root: str, user: str | None, home: str) -> None:
        self._folder = folder
        self._root = root
        self._user = user
        self.home = Path(f"{root}{home}")
        self._own_home = home

    def command(self, name: str, *words: str, display: str = "") -> list[str]:
        """Return the words that run one of the programs as its user does."""
        variables = [f"{name}={self._own_home}" for name in ("HOME", "SNDR_HOME")]
        variables.append("PATH=/usr/local/bin:/usr/bin:/bin")
        if display:
            variables += [f"DISPLAY={display}", f"SNDR_E2E_INSPECT={self._own_home}/seen.json"]
        inside = ["/usr/bin/env", "-i", *variables]
        if self._user is not None:
            inside = ["chroot", f"--userspec={self._user}", self._root, *inside]
        return [*inside, f"{self._folder}/{name}", *words]

    def ask(self, *words: str, code: int = 0) -> str:
        """Run the command line to its end; what it printed. Raises AssertionError for another exit code."""
        command = self.command("sndr", *words)
        try:
            done = subprocess.run(
                command, cwd="/", capture_output=True, text=True, timeout=LIMIT, check=False
            )
        except subprocess.TimeoutExpired as late:
            what = f"waited {LIMIT:.0f} s for the end of `sndr {' '.join(words)}`"
            said = f"it printed {late.stdout or b''!r} {late.stderr or b''!r}"
            raise AssertionError(f"{what}; {said}, {self.seen()}") from None
        assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def running(self) -> dict[int, str]:
        """Return the processes of this program: those whose file lies in its folder."""
        found = {}
        folder = os.path.realpath(f"{self._root}{self._folder}")
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if os.readlink(entry / "exe").startswith(f"{folder}/"):
                    words = (entry / "cmdline").read_bytes().decode(errors="replace")
                    found[int(entry.name)] = words.replace("\0", " ").strip()
            except OSError:
                continue
        return found

    def wait_for(self, what: str, check: Callable[[], bool]) -> None:
        """Wait for a state; one that does not come is named, with the processes that run then."""
        began = time.monotonic()
        while not check():
            waited = time.monotonic() - began
            assert waited < LIMIT, f"waited {waited:.0f} s for {what}; {self.seen()}"
            time.sleep(0.1)

    def seen(self) -> str:
        """Return the processes of this program in words, and how busy the machine is."""
        rows = [f"{number} {words}" for number, words in sorted(self.running().items())]
        load = os.getloadavg()[0]
        return f"load {load:.0f}, of this program run: {'; '.join(rows) or 'none'}"


def told(line: str) -> None:
    """Say what was seen."""
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


def by_window(program: Program, screen: Desktop) -> None:
    """Start the window, have the bundled model answer in it, and close it."""
    began = time.monotonic()
    words = program.command("sndr-gui", display=screen.environment["DISPLAY"])
    picture = Path("build/smoke-test.png").absolute()
    with window(screen, program.home, picture, words) as gui:
        told(f"the window is painted after {time.monotonic() - began:.1f} s")
        gui.click("Start the demo model")
        gui.wait_for("Stop")
        told("the bundled model runs")
        gui.open("Chat")
        gui.click("Message")
        gui.type(QUESTION)
        gui.press("Return")
        program.wait_for("an answer in the window", lambda: bool(gui.answers() and gui.answers()[-1]))
        gui.wait_until_shown("Send")
        told(f"it answered in the window: {gui.answers()[-1][:60]!r}")
        answer = program.ask("chat", "--max-tokens", "16", QUESTION)
        assert answer.strip()
        told(f"and the command line on the same host: {answer.strip()[:60]!r}")
        gui.open("Home")
        gui.click("Stop")
        gui.wait_for("Start sndr-demo again")
        assert gui.close() == 0
    nothing_left(program)
    told("the window closed with exit code 0, and nothing of it runs")


def by_commands(program: Program) -> None:
    """Start the bundled model without a window, ask it over HTTP's client, end the host."""
    program.ask("run", "--demo", "--detach", "--json")
    status = json.loads(program.ask("status", "--json").splitlines()[-1])
    told(f"a host in the background serves {', '.join(one['name'] for one in status['engines'])}")
    assert program.ask("chat", "--max-tokens", "16", QUESTION).strip()
    program.ask("bench", "list", "--json")
    program.ask("gpu", "power", "--json")
    program.ask("quit")
    nothing_left(program)
    told("it answered and ended; nothing of it runs")


def by_force(program: Program) -> None:
    """Kill the host of an engine: the reaper ends the engine."""
    program.ask("run", "--demo", "--detach", "--json")
    hosts = [number for number, words in program.running().items() if " serve " in f"{words} "]
    assert len(hosts) == 1, f"one host is looked for; {program.seen()}"
    os.kill(hosts[0], signal.SIGKILL)
    nothing_left(program)
    told("its host was killed; the reaper left nothing")


def nothing_left(program: Program) -> None:
    """Wait until no process of the program is there."""
    program.wait_for("the end of every process of the program", lambda: not program.running())


@contextmanager
def somewhere(asked: argparse.Namespace) -> Iterator[Program]:
    """Yield the program with folders of its own."""
    if asked.root is None:
        with tempfile.TemporaryDirectory(prefix="sndr-smoke-") as home:
            yield Program(str(asked.folder.absolute()), "", None, home)
        return
    home = f"/home/{asked.user}"
    yield Program(str(asked.folder), str(asked.root.absolute()), asked.user, home)


def main() -> int:
    """Look at everything; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--user")
    asked = parser.parse_args()
    for name in list(os.environ):
        if name.startswith(LEFT_OUT):
            del os.environ[name]
    with somewhere(asked) as program:
        told(program.ask("--version").strip())
        try:
            with desktop(PATIENCE) as screen:
                by_window(program, screen)
            by_commands(program)
            by_force(program)
        finally:
            for number in program.running():
                os.kill(number, signal.SIGKILL)
    told("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
