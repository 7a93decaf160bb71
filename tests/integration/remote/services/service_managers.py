"""A real service manager of a user with its journal, a real Podman, and a FAKE engine that both run.

systemd is no first process here: one for a user runs in a mount and a cgroup namespace of its own.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

_SOURCE = Path(__file__).with_name("fake_engine.c")
_SYSTEMD, _JOURNALD = Path("/usr/lib/systemd/systemd"), Path("/usr/lib/systemd/systemd-journald")
_GROUPS = Path("/sys/fs/cgroup/systemd")
_OUTSIDE = """
mkdir "$1" && echo $$ >"$1/cgroup.procs" && exec unshare --mount --cgroup sh -c "$2" sh "$1"
"""
_INSIDE = """
umount /sys/fs/cgroup/unified 2>/dev/null
mount --bind "$1" /sys/fs/cgroup/systemd || exit 1
mkdir -p /run/systemd && mount -t tmpfs none /run/systemd && mkdir -p /run/systemd/system /run/systemd/journal
mkdir -p /run/log && mount --bind "$JOURNAL" /run/log
group=/sys/fs/cgroup/systemd/user.slice/user-$(id -u).slice/user@$(id -u).service
mkdir -p "$group"
/usr/lib/systemd/systemd-journald &
sleep 0.5
echo $$ >"$group/cgroup.procs"
exec /usr/lib/systemd/systemd --user --log-target=null
"""
CONTAINERS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "host"
log_driver = "k8s-file"
[engine]
runtime = "runc"
events_logger = "file"
cgroup_manager = "cgroupfs"
"""
STORAGE = """[storage]
driver = "vfs"
graphroot = "{folder}/images"
runroot = "{folder}/running"
"""


def can_run_systemd() -> bool:
    """Tell whether a service manager of a user can be run here."""
    tools = all(shutil.which(name) for name in ("unshare", "systemctl", "journalctl"))
    return tools and os.geteuid() == 0 and all(one.exists() for one in (_SYSTEMD, _JOURNALD, _GROUPS))


def can_run_podman() -> bool:
    """Tell whether a container can be run here, and an engine for it be made."""
    needed = ("podman", "runc", "gcc")
    init = any(Path(one).exists() for one in ("/usr/bin/catatonit", "/usr/libexec/podman/catatonit"))
    return os.geteuid() == 0 and init and all(shutil.which(name) for name in needed)


def fake_engine(path: Path) -> Path:
    """Compile the FAKE engine as a program that needs nothing beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-static", "-O1", "-o", str(path), str(_SOURCE)], check=True)
    return path


@contextmanager
def user_manager(folder: Path, home: Path, **variables: str) -> Iterator[dict[str, str]]:
    """A real `systemd --user` for a home; gives the variables with which its user's programs find it."""
    run, journal = folder / "run", folder / "log"
    run.mkdir(mode=0o700)
    journal.mkdir()
    given = {"HOME": str(home), "XDG_RUNTIME_DIR": str(run), **variables}
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    group = _GROUPS / f"sndr-test-{os.getpid()}-{folder.name}"
    process = subprocess.Popen(
        ["sh", "-c", _OUTSIDE, "sh", str(group), _INSIDE],
        env={**kept, **given, "JOURNAL": str(journal)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 30
        while not (run / "systemd" / "private").exists():
            assert process.poll() is None, "the service manager did not start"
            assert time.monotonic() < end
            time.sleep(0.05)
        yield given
    finally:
        _end_all(group, process)


def _end_all(group: Path, process: "subprocess.Popen[bytes]") -> None:
    """End the service manager with all that it runs, and remove its groups."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        pids = {int(pid) for listed in group.rglob("cgroup.procs") for pid in listed.read_text().split()}
        if not pids:
            break
        for pid in pids:
            with contextlib.suppress(psutil.Error):
                psutil.Process(pid).kill()
        time.sleep(0.1)
    process.wait(10)
    for one in sorted(group.rglob("*"), key=lambda path: len(path.parts), reverse=True):
        if one.is_dir():
            with contextlib.suppress(OSError):
                one.rmdir()
    with contextlib.suppress(OSError):
        group.rmdir()


@contextmanager
def podman(folder: Path, *images: str) -> Iterator[dict[str, str]]:
    """A real Podman with a store of its own that has the FAKE engine by these names; gives its variables."""
    base = folder / "podman"
    base.mkdir()
    (base / "containers.conf").write_text(CONTAINERS, encoding="utf-8")
    (base / "storage.conf").write_text(STORAGE.format(folder=base), encoding="utf-8")
    given = {
        "CONTAINERS_CONF": str(base / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(base / "storage.conf"),
    }
    environment = {**os.environ, **given}
    fake_engine(base / "image" / "engine")
    lines = ("FROM scratch", "COPY engine /app/llama-server", "COPY engine /usr/bin/python3")
    (base / "image" / "Dockerfile").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run(*words: str) -> None:
        subprocess.run(["podman", *words], env=environment, check=True, capture_output=True, timeout=120)

    try:
        for image in images:
            run("build", "--quiet", "--tag", image, str(base / "image"))
        yield given
    finally:
        with contextlib.suppress(subprocess.SubprocessError):
            run("rm", "--all", "--force", "--time", "1")
            run("rmi", "--all", "--force")
