#!/usr/bin/env python3
"""Asks an engine whether it still computes, and restarts its service when it does not.

Standard library only: it runs on machines that have nothing else of this program. A full queue is no hang: an
engine that has produced tokens since the last check is busy. What was seen last is `watchdog.json` beside
this file, each change of it a line of `watchdog-events.jsonl`; both can be read while nobody watches. It ends
with 0 unless it cannot do its work.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

# Of vLLM, llama.cpp and SGLang: tokens written and read since the start. Of vLLM: drafts, and those accepted.
_TOKENS = (
    r"vllm:(?:generation|prompt)_tokens_total|llamacpp:(?:tokens_predicted|prompt_tokens)_total"
    r"|sglang:(?:generation|prompt)_tokens_total"
)
_DRAFTED = r"vllm:spec_decode_num_draft_tokens_total"
_ACCEPTED = r"vllm:spec_decode_num_accepted_tokens_total"
_QUICK = 10.0
# So many drafts of which none was accepted are no accident.
_DRAFTS_TO_JUDGE = 500
# Restarts within this time count; before the next one it waits twice as long as before this one.
_WINDOW, _FIRST_PAUSE = 6 * 3600.0, 60.0
_MOST_EVENTS = 200
_PROPERTIES = "ActiveState,SubState,ActiveEnterTimestampMonotonic,ControlGroup,NRestarts"
# Where systemd's groups are: of version 2, or of version 1 beside it.
_CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd")


class Check(NamedTuple):
    """One thing that was looked at; `ok` is None where it could not be."""

    name: str
    ok: bool | None
    detail: str = ""


def main() -> int:
    """One check."""
    given = arguments()
    records = Records(Path(given.folder or Path(__file__).parent), given.unit)
    unit = Unit(given.unit)
    missing = [name for name in given.file if not Path(name).exists()]
    if missing:
        return rehydrate(given, records, unit, missing)
    records.known.pop("awaited", None)
    if (came := records.known.pop("missing", None)) and unit.since is None:
        # Somebody brought it from elsewhere.
        names = ", ".join(Path(str(name)).name for name in came)
        records.tell("rehydrated", f"{names}: there again")
        return start(given, unit)
    if unit.since is None:
        # Not running, or on its way up or down: that is for systemd.
        if unit.sub == "auto-restart":
            return records.tell("failing", "it ended, and its service starts it again")
        records.tell("starting" if unit.state == "activating" else "stopped", f"its service is {unit.state}")
        return 0
    known = records.of_run(unit.started, unit.again)
    checks = look(given, unit, known)
    failed = [check for check in checks if check.ok is False and check.name != "needs"]
    lacking = [check.detail for check in checks if check.ok is False and check.name == "needs"]
    if not failed:
        known |= {"answered": True, "failures": 0}
        return records.tell("degraded" if lacking else "healthy", "; ".join(lacking), checks)
    why = "; ".join(check.detail for check in failed)
    if any(check.name == "busy" and check.ok for check in checks):
        known["failures"] = 0
        return records.tell("busy", f"{why}, and it goes on computing", checks)
    if not known["answered"] and unit.age < given.start_seconds:
        return records.tell("starting", why, checks)
    known["failures"] += 1
    if known["failures"] < given.failures:
        return records.tell("failing", f"{why} ({known['failures']} of {given.failures})", checks)
    return restart(given, records, unit, why, checks)


def arguments() -> argparse.Namespace:
    """Return the arguments that the unit gives."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("unit", "address", "health", "path", "body"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("start-seconds", "answer-seconds", "failures"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--key-variable", default="", help="the variable with the key that a request brings")
    parser.add_argument("--model", default="", help="the id that /v1/models has to list")
    parser.add_argument("--gpus", type=int, default=0, help="on how many GPUs it has to hold memory")
    parser.add_argument("--needs", action="append", default=[], help="a program, or several with | between")
    parser.add_argument("--programs", default="", help="the folder of the engine's own programs")
    parser.add_argument("--file", action="append", default=[], help="a file of the model")
    parser.add_argument("--rehydrate", default="", help="the program that fetches the model's files again")
    parser.add_argument("--awaited", action="store_true", help="who sent the files brings them again")
    parser.add_argument("--restarts", type=int, default=3, help="how often in six hours it may be restarted")
    parser.add_argument("--folder", default="", help="where it writes down what it saw, its own unless said")
    return parser.parse_args()


def look(given: argparse.Namespace, unit: Unit, known: dict[str, Any]) -> list[Check]:
    """Return every check; what the counters showed is kept for the next time."""
    checks = list(asked(given))
    text = metrics_of(given)
    counted = {
        name: total(text, pattern)
        for name, pattern in (("tokens", _TOKENS), ("drafted", _DRAFTED), ("accepted", _ACCEPTED))
    }
    before = known["counted"]
    if any(check.ok is False for check in checks):
        checks.append(Check("busy", True if grown(before, counted, "tokens") else None))
    elif counted["drafted"] is not None:
        drafts = grown(before, counted, "drafted")
        stuck = drafts >= _DRAFTS_TO_JUDGE and not grown(before, counted, "accepted")
        checks.append(Check("acceptance", not stuck, f"none of {drafts:.0f} drafts was accepted" * stuck))
        if 0 <= drafts < _DRAFTS_TO_JUDGE:
            # Too few to say anything: they are counted on from where they were.
            kept = ("drafted", "accepted")
            counted |= {name: before[name] for name in kept if before.get(name) is not None}
    known["counted"] = counted
    if given.gpus:
        checks.append(unit.on_gpus(given.gpus))
    path = os.pathsep.join((given.programs, os.environ.get("PATH", os.defpath)))
    lacking = [
        one for one in given.needs if not any(shutil.which(name, path=path) for name in one.split("|"))
    ]
    if given.needs:
        lacks = f"{', '.join(lacking)}: not installed, and its kernels are compiled with it"
        checks.append(Check("needs", not lacking, lacks if lacking else ""))
    return checks


def asked(given: argparse.Namespace) -> Iterator[Check]:
    """Ask whether it is well, what it serves, and for the smallest answer; the first failure ends it."""
    try:
        with opened(given, given.health, None, _QUICK):
            pass
    except OSError as error:
        yield Check("health", False, f"it does not say that it is well ({said(error)})")
        return
    yield Check("health", True)
    if given.model:
        try:
            with opened(given, "/v1/models", None, _QUICK) as answer:
                listed = [one.get("id") for one in json.load(answer)["data"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            yield Check("models", False, f"it does not list its models ({said(error)})")
            return
        if given.model not in listed:
            yield Check("models", False, f"it does not list {given.model}")
            return
        yield Check("models", True)
    try:
        with opened(given, given.path, given.body.encode(), given.answer_seconds) as answer:
            body = json.load(answer)
        empty = not any(body.get(key) for key in ("choices", "data", "results"))
    except (OSError, ValueError, AttributeError) as error:
        yield Check("token", False, f"it does not answer ({said(error)})")
        return
    yield Check("token", not empty, "its answer is empty" if empty else "")


def metrics_of(given: argparse.Namespace) -> str:
    """Return what its counters say; empty where it does not tell."""
    try:
        with opened(given, "/metrics", None, _QUICK) as answer:
            text: str = answer.read(8 << 20).decode("utf-8", "replace")
    except OSError:
        return ""
    return text


def total(text: str, names: str) -> float | None:
    """The sum of the counters of these names; None where there is none."""
    found = re.findall(rf"^(?:{names})(?:\{{[^}}\n]*\}})?[ \t]+([0-9][0-9.eE+]*)", text, re.MULTILINE)
    try:
        return sum(map(float, found)) if found else None
    except ValueError:
        return None


def grown(before: dict[str, Any], counted: dict[str, float | None], name: str) -> float:
    """By how much a counter has grown since the last check; 0 where one of both is not known."""
    old, new = before.get(name), counted[name]
    return new - old if old is not None and new is not None and new > old else 0.0


def since_boot() -> float:
    """The seconds since this machine was started: pauses must not depend on a clock that is set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def this_boot() -> str:
    """The mark that tells this start of the machine from others."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def restart(given: argparse.Namespace, records: Records, unit: Unit, why: str, checks: list[Check]) -> int:
    """Restart it, not too often and with longer and longer pauses."""
    now = since_boot()
    done = [at for at in records.known["restarts"] if now - at < _WINDOW]
    if len(done) >= given.restarts:
        why = f"{why}; it was restarted {len(done)} times in six hours, and is left as it is"
        return records.tell("given_up", why, checks)
    pause = _FIRST_PAUSE * 2 ** len(done) if done else 0.0
    if done and now - done[-1] < pause:
        return records.tell("failing", f"{why}; the next restart waits for {pause:.0f} s", checks)
    records.known["restarts"] = [*done, now]
    records.known["run"] = ""
    records.tell("restarted", f"{why}: it hangs and is restarted", checks)
    return unit.systemctl("restart", given.unit).returncode


def rehydrate(given: argparse.Namespace, records: Records, unit: Unit, missing: list[str]) -> int:
    """Fetch the files of the model that are gone, and start what could not start without them."""
    names = ", ".join(Path(name).name for name in missing)
    records.known |= {"missing": missing, "awaited": given.awaited}
    if given.awaited:
        return records.tell("failing", f"{names}: not there; the machine that sent it brings it again")
    if not given.rehydrate:
        return records.tell("failing", f"{names}: not there, and nothing is known that fetches it")
    records.tell("rehydrating", f"{names}: not there; it is fetched again")
    ended = subprocess.run([given.rehydrate], stdin=subprocess.DEVNULL, check=False)
    if ended.returncode or not all(Path(name).exists() for name in missing):
        return records.tell("failing", f"{names}: could not be fetched (exit code {ended.returncode})")
    del records.known["missing"]
    records.tell("rehydrated", f"{names}: fetched again and checked")
    return start(given, unit) if unit.since is None else 0


def start(given: argparse.Namespace, unit: Unit) -> int:
    """Start what could not start without the files of its model."""
    unit.systemctl("reset-failed", given.unit)
    return unit.systemctl("start", given.unit).returncode


def opened(given: argparse.Namespace, path: str, body: bytes | None, seconds: float) -> Any:
    """The answer to a request. Raises OSError."""
    headers = {"Content-Type": "application/json"}
    key = os.environ.get(given.key_variable, "").strip() if given.key_variable else ""
    if not (key.isascii() and key.isprintable()):
        # What puts it into a header would show it in the journal.
        raise OSError(f"{given.key_variable} holds no key")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(given.address + path, body, headers)
    # Never through a proxy that the person's session names.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open(request, timeout=seconds)


def said(error: Exception) -> str:
    """An error in a few words."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(reason) or type(error).__name__


class Unit:
    """The service, as the service manager and the driver of the GPUs know it."""

    def __init__(self, name: str) -> None:
        shown = self.systemctl("show", f"--property={_PROPERTIES}", name)
        facts = dict(line.partition("=")[::2] for line in shown.stdout.splitlines())
        self.state = facts.get("ActiveState") or "unknown"
        self.sub = facts.get("SubState", "")
        self._group = facts.get("ControlGroup", "")
        counted = facts.get("NRestarts", "")
        self.again = int(counted) if counted.isdecimal() else None
        # In seconds since the machine started; None while it is not active.
        self.since: float | None = None
        if self.state == "active":
            self.since = int(facts.get("ActiveEnterTimestampMonotonic") or 0) / 1e6

    @property
    def age(self) -> float:
        """For how many seconds it has been active."""
        return time.clock_gettime(time.CLOCK_MONOTONIC) - (self.since or 0.0)

    @property
    def started(self) -> str:
        """A name of this run of it, unlike that of any other, also after the machine was restarted."""
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        except OSError:
            boot = ""
        return f"{boot} {self.since}"

    def on_gpus(self, expected: int) -> Check:
        """Look on how many GPUs its processes hold memory."""
        columns = "--query-compute-apps=pid,gpu_uuid"
        try:
            listed = subprocess.run(
                ["nvidia-smi", columns, "--format=csv,noheader"],
                capture_output=True,
                text=True,
                check=True,
                timeout=_QUICK * 3,
                stdin=subprocess.DEVNULL,
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            return Check("gpus", None, f"nvidia-smi does not say ({type(error).__name__})")
        rows = [[cell.strip() for cell in line.split(",")] for line in listed.splitlines()]
        holders = {(row[0], row[1]) for row in rows if len(row) == 2}
        own = self._processes()
        held = {gpu for pid, gpu in holders if pid in own}
        if not held and holders:
            return Check("gpus", None, "the driver's process numbers are none of this service")
        few = len(held) < expected
        return Check("gpus", not few, f"it holds memory on {len(held)} of {expected} GPUs" if few else "")

    def _processes(self) -> set[str]:
        """The numbers of its processes; those of a container are in a group below its own."""
        found: set[str] = set()
        for hierarchy in _CGROUPS if self._group.startswith("/") else ():
            for listed in Path(f"{hierarchy}{self._group}").rglob("cgroup.procs"):
                try:
                    found |= set(listed.read_text(encoding="utf-8").split())
                except OSError:
                    continue
        return found

    @staticmethod
    def systemctl(*words: str) -> subprocess.CompletedProcess[str]:
        """Ask the service manager of whoever runs this."""
        scope = [] if os.geteuid() == 0 and "XDG_RUNTIME_DIR" not in os.environ else ["--user"]
        return subprocess.run(
            ["systemctl", *scope, *words],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )


class Records:
    """Keeps what was seen, in two files: the newest state, and the changes of it."""

    def __init__(self, folder: Path, unit: str) -> None:
        self._state, self._events = folder / "watchdog.json", folder / "watchdog-events.jsonl"
        self._unit = unit
        try:
            known = json.loads(self._state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self.known: dict[str, Any] = known if isinstance(known, dict) else {}
        restarts = self.known.get("restarts")
        restarts = restarts if isinstance(restarts, list) else []
        # Their times are since the machine was started, and say nothing after its next start.
        here = self.known.get("boot") == (boot := this_boot())
        self.known["restarts"] = [at for at in restarts if here and isinstance(at, int | float)]
        self.known["boot"] = boot

    def of_run(self, started: str, again: int | None) -> dict[str, Any]:
        """Return what is known of this run of the service; another one begins anew.

        `again` is how often the service manager has restarted it by itself since somebody else did.
        """
        if self.known.get("run") != started or not isinstance(self.known.get("counted"), dict):
            restarts = self.known["restarts"]
            if again and self.known.get("run"):
                why = "it ended, and its service was started again without being asked"
                self._add({"at": round(time.time(), 3), "unit": self._unit, "state": "restarted", "why": why})
            if again == 0 and self.known.get("run"):
                # Neither this program nor the service manager by itself began this run: a person did.
                restarts = []
            self.known |= {
                "run": started,
                "answered": False,
                "failures": 0,
                "counted": {},
                "restarts": restarts,
            }
        return self.known

    def tell(self, state: str, why: str = "", checks: list[Check] | None = None) -> int:
        """Write down what was seen, and say it where it is new or no good news. Returns 0."""
        now = round(time.time(), 3)
        changed = state != self.known.get("state")
        if changed:
            self.known["changed_at"] = now
        self.known |= {"unit": self._unit, "state": state, "why": why, "at": now}
        if checks is not None:
            self.known["checks"] = [check._asdict() for check in checks]
        _write(self._state, json.dumps(self.known))
        if changed:
            self._add({"at": now, "unit": self._unit, "state": state, "why": why})
        if why and state != "stopped":
            print(f"{self._unit} is {state.replace('_', ' ')}: {why}", flush=True)
        return 0

    def _add(self, event: dict[str, Any]) -> None:
        try:
            lines = self._events.read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
        lines = [*lines[-_MOST_EVENTS + 1 :], json.dumps(event)]
        _write(self._events, "\n".join(lines) + "\n")


def _write(path: Path, text: str) -> None:
    """Write it beside, then rename it; a full disk keeps nobody from being restarted."""
    part = path.with_suffix(".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        print(f"{path} could not be written: {error.strerror}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
