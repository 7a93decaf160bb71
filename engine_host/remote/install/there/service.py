"""The host as a process there: found, started, stopped, and waited for."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import signal
import sqlite3
import subprocess
import time
from typing import Any
from urllib.parse import quote

from engine_host.remote.install.there.places import RECORD, UNIT, Failed, Places, read, write
from engine_host.remote.install.there.programs import QUICK, attempt, run, sndr, user

_UP, _DOWN, _ENGINES = 90.0, 60.0, 180.0
_NOTE = 2.0


def running_host(places: Places) -> dict[str, Any] | None:
    """The host that holds this user's data, if one runs: known by the lock that it holds, however started."""
    end = time.monotonic() + _NOTE
    while _held(places):
        claim = read(os.path.join(places.data, "host.claim"))
        if claim is None and time.monotonic() < end:
            # It has the lock, and its note comes next.
            time.sleep(0.05)
            continue
        return _holder(places, claim or {})
    return None


def _held(places: Places) -> bool:
    try:
        claim = os.open(os.path.join(places.data, "host.claim"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(claim, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        # Where there are no locks, no host can hold one.
        return False
    finally:
        os.close(claim)
    return False


def _holder(places: Places, claim: dict[str, Any]) -> dict[str, Any]:
    """The process of a claim; one of another machine, or that tells nothing of itself, is not ours."""
    said = claim.get("pid")
    pid = said if isinstance(said, int) else 0
    if claim.get("machine") != platform.node():
        argv = ["on", str(claim.get("machine", "an unknown machine"))]
        return {"pid": pid, "argv": [word[:500] for word in argv], "ours": False}
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            argv = [os.fsdecode(word) for word in file.read().split(b"\0") if word]
    except OSError:
        argv = []
    return {
        "pid": pid,
        "argv": [word[:500] for word in argv[:20]],
        "ours": any(word.startswith(places.root + os.sep) for word in argv[:2]),
    }


def refuse_other(places: Places) -> dict[str, Any] | None:
    """Return our host, if it runs; a host of another installation stops the step."""
    running = running_host(places)
    if running is not None and not running["ours"]:
        raise Failed("conflict", "A host of another installation runs there.", **running)
    return running


def engines(places: Places) -> list[dict[str, Any]] | None:
    """The engines of our host, if it runs; None where it does not answer."""
    running = running_host(places)
    if running is None:
        return outlived(places)
    if not running["ours"]:
        return []
    try:
        return _living(places)
    except (Failed, KeyError, TypeError):
        return None


def outlived(places: Places) -> list[dict[str, Any]]:
    """The engines that still run though no host does: those in its database whose process is the same one."""
    path = os.path.join(places.data, "sndr.sqlite")
    # Without a log beside it nothing is open, and nothing may be made by looking.
    mode = "mode=ro" if os.path.exists(path + "-wal") else "immutable=1"
    try:
        opened = sqlite3.connect("file:%s?%s" % (quote(path), mode), uri=True, timeout=2.0)
        with contextlib.closing(opened) as database:
            rows = database.execute("SELECT body FROM document WHERE kind = 'engine' LIMIT 200").fetchall()
        found = [json.loads(body) for (body,) in rows]
        return [
            {"name": str(one["engine"]["name"])[:500], "keep": True}
            for one in found
            if _born(int(one["pid"])) == one["born"]
        ]
    except (sqlite3.Error, OSError, ValueError, KeyError, TypeError):
        return []


def _born(pid: int) -> str | None:
    """When a process began, as the host writes it: the boot, and ticks since then."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            state, *fields = file.read().rpartition(")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return None if state == "Z" else "%s/%s" % (file.read().strip(), fields[18])
    except (OSError, IndexError, ValueError):
        return None


def end_outlived(places: Places, record: dict[str, Any]) -> None:
    """Let the host come back to engines that outlived it, and end them: it knows what belongs to them."""
    left = outlived(places)
    if not left:
        return
    try:
        pid = launch(places, str(record.get("service") or "plain"))
        answering(places, os.path.realpath(places.current), pid)
    except Failed as failure:
        names = [one["name"] for one in left]
        raise Failed(
            "damaged",
            "Engines of the host run there, and it does not start any more to end them.",
            engines=names,
            error="%s: %s" % (", ".join(names)[:300], failure.message),
        ) from failure


def end_engines(places: Places) -> None:
    """End every engine of our host, kept ones too: what they read from is about to be removed."""
    if not _living(places):
        return
    python = os.path.join(places.current, "bin", "python")
    run([python, "-P", "-m", "engine_host", "stop", "--all", "--now"], _ENGINES, "conflict")
    if left := _living(places):
        raise Failed("conflict", "Engines there do not end.", engines=[one["name"] for one in left])


def _living(places: Places) -> list[dict[str, Any]]:
    engines = sndr(places.current, ["status", "--json"], reason="conflict")["engines"]
    live = [one for one in engines if one["state"] not in ("unloaded", "failed")]
    return [{"name": one["name"], "keep": one["keep"]} for one in live]


def has_services() -> bool:
    """Tell whether this user has a service manager that can be talked to."""
    said = attempt(["systemctl", "--user", "show-environment"], QUICK)
    return said is not None and said.returncode == 0


def lingers() -> bool | None:
    said = attempt(["loginctl", "show-user", user(), "--property=Linger", "--value"], QUICK)
    return said.stdout.strip() == "yes" if said is not None and said.returncode == 0 else None


def start(places: Places, record: dict[str, Any], unit: str) -> dict[str, Any]:
    """Start the current release: as a service where it stays after a logout, else as a plain process."""
    service, why = "systemd", ""
    if not has_services():
        service, why = "plain", "this user has no service manager there"
    elif lingers() is not True:
        said = attempt(["loginctl", "enable-linger"], QUICK)
        if said is not None and said.returncode == 0 and lingers():
            record["set_lingering"] = True
        else:
            service, why = (
                "plain",
                "services of this user end with its last session, and lingering is not permitted",
            )
    record["service"] = service
    write(os.path.join(places.root, RECORD), record)
    if service == "systemd":
        os.makedirs(os.path.dirname(places.unit), exist_ok=True)
        # In one go: half a unit would keep the release before from coming back.
        with open(places.unit + ".new", "w", encoding="utf-8") as file:
            file.write(unit)
        os.replace(places.unit + ".new", places.unit)
    return {"service": service, "why_plain": why, "pid": launch(places, service)}


def launch(places: Places, service: str) -> int | None:
    """Start what `current` leads to, and write nothing for that; its process, unless it is a service."""
    if service == "systemd":
        for words in (["daemon-reload"], ["enable", UNIT], ["restart", UNIT]):
            run(["systemctl", "--user", *words], _DOWN, "install_failed")
        return None
    path = os.path.join(places.root, "host.log")
    try:
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        log = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        started = subprocess.Popen(
            [os.path.join(places.current, "bin", "python"), "-P", "-m", "engine_host", "serve"],
            cwd=places.home,
            env=_environment_that_stays(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except OSError as error:
        raise Failed(
            "damaged", "The program of the host there cannot be started.", error=str(error)
        ) from error
    finally:
        os.close(log)
    return started.pid


def _environment_that_stays() -> dict[str, str]:
    """The session's variables, but for the folder that is removed when the session ends."""
    gone = "/run/user/%d" % os.getuid()
    return {name: value for name, value in os.environ.items() if (name, value) != ("XDG_RUNTIME_DIR", gone)}


def stop(places: Places, record: dict[str, Any]) -> None:
    if record.get("service") == "systemd" and os.path.exists(places.unit):
        attempt(["systemctl", "--user", "stop", UNIT], _DOWN)
    running = running_host(places)
    if running is None or not running["ours"]:
        return
    # Asked once: a second signal would cut the end short. What is killed has a reaper.
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(running["pid"], number)
        end = time.monotonic() + _DOWN
        while _alive(running["pid"]) and time.monotonic() < end:
            time.sleep(0.1)
        if not _alive(running["pid"]):
            return


def answering(places: Places, target: str, pid: int | None) -> dict[str, Any]:
    """Wait until the started host answers, and is of this release; `pid` is its process if known."""
    wanted = sndr(target, ["version", "--json"])
    end = time.monotonic() + _UP
    while True:
        try:
            host = sndr(target, ["status", "--json"])["host"]
            break
        except Failed as failure:
            if time.monotonic() > end or (pid is not None and not _alive(pid)):
                raise Failed(
                    "verification_failed", "The new host did not answer.", **failure.evidence
                ) from failure
            time.sleep(0.5)
    running = running_host(places)
    if running is None or not running["ours"] or running["pid"] != host["pid"]:
        raise Failed("verification_failed", "Another host than the new one answers there.", pid=host["pid"])
    if wanted["program"] not in str(host["program"]).split():
        said = {"wanted": wanted["program"], "answers": host["program"]}
        raise Failed("verification_failed", "The host that answers is of another version.", **said)
    return {"program": wanted["program"], "protocol": wanted["protocol"], "pid": host["pid"]}


def _alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return os.path.exists("/proc/%d" % pid)
