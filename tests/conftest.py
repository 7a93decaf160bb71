"""Each test has folders of its own, and leaves no process, thread, socket or lock behind."""

import gc
import os
import shutil
import signal
import ssl
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import platformdirs
import pytest

# Before any test imports Qt: unit and view tests draw nowhere. The end-to-end tests start the window as a
# process of its own, on a display of its own.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["QT_API"] = "pyside6"
# Tables are as wide as they need to be, whichever terminal starts the tests.
os.environ.pop("COLUMNS", None)

from sndr_gui.kit.loop.plain_imports import keep_imports_plain

# How long an example takes says how busy the machine is; timings belong in the bench.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.load_profile("here")

# Nor do the five seconds that httpx waits unless it is told otherwise: each test has a limit of its own.
for _wait in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _wait, 60.0)

TESTS = Path(__file__).resolve().parent
# Built engines take minutes: integration tests share the user's, everything else has its own cache.
SHARED_CACHE = os.environ.get("SNDR_CACHE") or str(platformdirs.user_cache_path("sndr", appauthor=False))
SETTLE = 15.0


# The folders in the order in which they run: what is quick and fails most often is told first.
FOLDERS = ("unit", "views", "hostile", "integration", "e2e")
# Of the others these run first, the longest before all: while a long file at the end keeps one worker, the
# others wait. docs/TESTING.md says how long each takes.
LONGEST = (
    "tests/integration/host/vllm/test_overlay.py",
    "tests/integration/host/vllm/test_bisect.py",
    "tests/integration/host/vllm/test_served.py",
    "tests/integration/remote/install/test_installing.py",
    "tests/integration/remote/services/test_units.py",
    "engine_host/overlay/patches/turboquant-grouped-attention/test_turboquant_grouped_attention.py",
    "engine_host/overlay/patches/oom-keeps-engine/test_oom_keeps_engine.py",
    "tests/integration/remote/install/test_over_ssh.py",
    "tests/e2e/test_window.py",
    "tests/integration/engines/test_vllm_install.py",
    "tests/integration/test_turboquant_speculation.py",
    "tests/integration/host/vllm/test_moved_anchors.py",
    "tests/e2e/test_window_vllm.py",
    "tests/integration/overlay/test_turboquant_kernels.py",
    "tests/integration/remote/transfer/test_models.py",
    "tests/integration/remote/test_from_nothing.py",
    "tests/hostile/soak/test_soak.py",
    "tests/integration/cli/test_bench_lab.py",
    "tests/e2e/test_window_whole_way.py",
    "tests/integration/remote/install/test_service.py",
    "tests/integration/host/test_launch.py",
    "tests/e2e/test_window_hosts.py",
    "tests/integration/deploy/test_vllm_start.py",
    "tests/e2e/test_headless.py",
    "tests/integration/remote/install/test_ctrl_c.py",
    "tests/integration/host/life/test_life.py",
    "tests/integration/remote/connection/test_connection.py",
    "tests/integration/remote/test_staging.py",
    "engine_host/overlay/patches/draft-head-8-bit/test_draft_head_8_bit.py",
    "tests/integration/sndr_gui/test_languages.py",
    "tests/integration/host/life/test_ends.py",
    "engine_host/overlay/patches/turboquant-grouped-attention/test_compiled_ahead.py",
    "engine_host/overlay/patches/hybrid-speculation-prefix-cache/test_hybrid_speculation_prefix_cache.py",
    "tests/integration/test_overlay_cost.py",
    "engine_host/overlay/patches/cpu-hybrid-speculation-states/test_cpu_hybrid_speculation_states.py",
    "tests/integration/operations/patches/test_bisect.py",
)
# What a test needs: by where its fixtures, and what its module imports, come from.
NEEDS = {
    "tests.vllm_environment": "vllm",
    "tests.overlay_engine": "vllm",
    "tests.kernel_interpreter": "kernels",
    "tests.integration.host.conftest": "llamacpp",
    "tests.integration.host_process": "llamacpp",
    "tests.integration.engines.conftest": "llamacpp",
    "tests.integration.gateway.conftest": "llamacpp",
    "tests.e2e.conftest": "llamacpp",
}
STARTS_A_PROCESS = {
    *("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "os.exec", "os.spawn"),
}


def pytest_configure() -> None:
    """Let SIGINT do what it does at a terminal; a script in the background has children ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # As the window does: 600 modules of tests, too, need not be read as text.
    keep_imports_plain()
    # What is imported and collected stays: looking through it again and again finds nothing.
    gc.disable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their length: compressed ones hold the time, and workers must agree on each name."""
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes | bytearray) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder and by what it needs; run quick folders first, then the longest files."""
    for item in items:
        folder = _folder(item.path)
        if folder in {"hostile", "integration", "e2e"}:
            item.add_marker(folder)
            for marker in sorted(_needs(item)):
                item.add_marker(marker)
    first = {TESTS.parent / name: place for place, name in enumerate(LONGEST)}
    quick = FOLDERS.index("views") + 1

    def turn(item: pytest.Item) -> tuple[int, int]:
        place = FOLDERS.index(_folder(item.path))
        return (place, 0) if place < quick else (quick, first.get(item.path, len(first) + place))

    items.sort(key=turn)


def pytest_collection_finish() -> None:
    """Take what importing and collecting made out of the garbage collector, which looks at it in vain."""
    gc.collect()
    gc.freeze()
    gc.enable()


@cache
def _folder(path: Path) -> str:
    """The kind of test; a patch's own test, beside the patch, runs in the real vLLM."""
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else "integration"


def _needs(item: pytest.Item) -> set[str]:
    """The engines that a test needs, as names of markers."""
    if not isinstance(item, pytest.Function):
        return set()
    definitions = item._fixtureinfo.name2fixturedefs.values()
    used = [*vars(item.module).values(), *(one.func for several in definitions for one in several)]
    return {NEEDS[place] for one in used if (place := getattr(one, "__module__", None)) in NEEDS}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what no UTF-8 can hold as escapes: hostile text in a report ends a worker of xdist."""
    report = yield
    report.sections = [(name, _written(text)) for name, text in report.sections]
    if report.longrepr is not None and (told := str(report.longrepr)) != _written(told):
        report.longrepr = _written(told)
    return report


def _written(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class NoProcess:
    """Refuses every new process while a unit test runs: an audit hook hears of each way to start one."""

    def __init__(self) -> None:
        self.watching = False
        self.refused: list[str] = []

        # A function and no method, of which Python asks at each of thousands of events what it does not have.
        def hear(event: str, arguments: tuple[object, ...]) -> None:
            if self.watching and event in STARTS_A_PROCESS:
                self.refused.append(f"{event}: {arguments!r:.200}")
                raise RuntimeError(
                    f"A unit test starts no process; this one belongs in tests/integration ({event})"
                )

        sys.addaudithook(hear)


# A hook cannot be taken out again, so there is one for all tests.
_no_process = NoProcess()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Watch from before the first fixture on, also one that a whole module shares."""
    _no_process.watching = _folder(item.path) == "unit"


@pytest.fixture(autouse=True, scope="session")
def trusted_roots() -> Iterator[None]:
    """Read the roots that clients trust once: httpx does so for each client, in 40 ms, also for HTTP."""
    made: dict[object, ssl.SSLContext] = {}

    def kept(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is not True or cert is not None:
            return httpx.create_ssl_context(verify, cert, trust_env)
        where = (trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        if where not in made:
            made[where] = httpx.create_ssl_context(trust_env=trust_env)
        return made[where]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", kept)
        yield


@pytest.fixture(autouse=True)
def no_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """A unit test that starts a process fails, also where the code under test survives the refusal."""
    if _folder(request.path) != "unit":
        yield
        return
    yield
    _no_process.watching = False
    refused, _no_process.refused = _no_process.refused, []
    if refused:
        pytest.fail("A unit test starts no process:\n  " + "\n  ".join(refused), pytrace=False)


@pytest.fixture(autouse=True)
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The program's folders for this test; a test that leaves something alive fails."""
    # A socket's path may have 107 bytes, so not below pytest's own long folders.
    folder = Path(tempfile.mkdtemp(prefix="sndr-t-"))
    monkeypatch.setenv("SNDR_HOME", str(folder))
    if any(request.node.get_closest_marker(name) for name in ("vllm", "llamacpp", "kernels")):
        monkeypatch.setenv("SNDR_CACHE", SHARED_CACHE)
    else:
        monkeypatch.delenv("SNDR_CACHE", raising=False)
    threads = set(threading.enumerate())
    # Looking at each process of the machine takes longer than most unit tests, which can start none.
    started = nothing_runs if _folder(request.path) == "unit" else processes_of
    yield folder
    left = _settled(folder, threads, started)
    if left:
        for pid, _ in started(folder):
            os.kill(pid, signal.SIGKILL)
    # A test may have made its folders unreadable on purpose.
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
    if left:
        pytest.fail("The test left behind:\n  " + "\n  ".join(left), pytrace=False)


def nothing_runs(_folder: Path) -> list[tuple[int, str]]:
    """Return the processes of a test that is refused each one it would start."""
    return []


def processes_of(folder: Path) -> list[tuple[int, str]]:
    """Processes that were started with this SNDR_HOME, whoever their parent is now."""
    mark = f"SNDR_HOME={folder}\0".encode()
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark not in (entry / "environ").read_bytes() + b"\0":
                continue
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if command:  # A zombie has no command line any more; its parent has yet to collect it.
            found.append((int(entry.name), command))
    return found


def sockets_and_locks(folder: Path) -> list[str]:
    """Sockets and lock files below a folder."""
    found = []
    # A folder may go while it is looked through, which rglob raises for.
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            try:
                is_socket = stat.S_ISSOCK(path.lstat().st_mode)
            except OSError:
                continue
            if is_socket or path.suffix == ".lock":
                found.append(str(path))
    return found


def _settled(
    folder: Path, threads: set[threading.Thread], started: Callable[[Path], list[tuple[int, str]]]
) -> list[str]:
    """What is still there after a moment of grace."""
    end = time.monotonic() + SETTLE
    while True:
        left = [f"process {pid}: {command[:200]}" for pid, command in started(folder)]
        left += [f"file {path}" for path in sockets_and_locks(folder)]
        left += [
            f"thread {thread.name}"
            for thread in set(threading.enumerate()) - threads
            # Qt's own threads show up as dummies once they run Python; Python cannot end them.
            if thread.is_alive() and not isinstance(thread, threading._DummyThread)
        ]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)
