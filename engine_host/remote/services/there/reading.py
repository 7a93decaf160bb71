"""Lines of a service there: those of the journal, and those of a container."""

from __future__ import annotations

import calendar
import json
import re
import time
from typing import Any

from engine_host.remote.install.there.places import Failed
from engine_host.remote.install.there.programs import QUICK, attempt
from engine_host.remote.services.there.managers import SYSTEMD, need, service
from engine_host.remote.services.there.running import ended

_LONGEST = 8000
_LOOK = 0.7
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def logs(given: dict[str, Any]) -> dict[str, Any]:
    """The newest lines, or those after a cursor; for some of these it waits a while."""
    manager, name = given["manager"], given["name"]
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9:_.@\\-]{0,199}", name):
        raise Failed("bad_request", "That is no name of a service.", name=name)
    need(manager)
    now = service(manager, name)
    if not now.get("there"):
        raise Failed("not_found", "There is no such service there.", name=name, manager=manager)
    end = time.monotonic() + float(given["wait"])
    while True:
        told = _journal(name, given) if manager == SYSTEMD else _container(manager, name, given)
        if told["lines"] or time.monotonic() + _LOOK > end:
            return told
        time.sleep(_LOOK)


def _journal(name: str, given: dict[str, Any]) -> dict[str, Any]:
    # Not --user, with which root sees none of its own units.
    words = ["journalctl", "--user-unit=%s.service" % name, "--output=json", "--no-pager", "--quiet"]
    words += ["--after-cursor=" + given["after"]] if given["after"] else []
    words += ["--lines=%d" % given["lines"]]
    said = attempt(words, QUICK)
    if said is None or said.returncode != 0:
        return {"lines": [], "cursor": given["after"], "note": ended(said)}
    lines, cursor = [], given["after"]
    for raw in said.stdout.splitlines():
        try:
            told = json.loads(raw)
            cursor = str(told["__CURSOR"])[:1000]
            at = int(told["__REALTIME_TIMESTAMP"]) / 1e6
        except (ValueError, KeyError, TypeError):
            continue
        lines.append({"at": at, "text": _text(told.get("MESSAGE"))[:_LONGEST]})
    return {"lines": lines, "cursor": cursor, "note": "" if lines or given["after"] else said.stderr[-300:]}


def _text(message: object) -> str:
    """A message of the journal; one that is not text comes as bytes, and one that is too long not at all."""
    if isinstance(message, list):
        return bytes(one & 255 for one in message if isinstance(one, int)).decode("utf-8", "replace")
    return "(too long for the journal)" if message is None else str(message)


def _container(tool: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    after = int(given["after"]) if given["after"].isdecimal() else None
    words = [tool, "logs", "--timestamps"]
    if after is None:
        words += ["--tail", str(given["lines"])]
    else:
        # Seconds of the epoch: both tools take them.
        words += ["--since", str(after // 10**9)]
    said = attempt([*words, name], QUICK)
    if said is None or said.returncode != 0:
        return {"lines": [], "cursor": given["after"], "note": ended(said)}
    found = []
    last = 0
    for raw in (said.stdout + "\n" + said.stderr).splitlines():
        stamp, text = _stamped(raw)
        if stamp is None:
            if not raw.strip():
                continue
            stamp, text = last, raw
        last = stamp
        if after is None or stamp > after:
            found.append((stamp, text))
    found.sort(key=lambda one: one[0])
    found = found[-given["lines"] :] if after is None else found[: given["lines"]]
    cursor = str(found[-1][0]) if found else given["after"]
    lines = [{"at": at / 1e9 if at else None, "text": text[:_LONGEST]} for at, text in found]
    return {"lines": lines, "cursor": cursor or str(time.time_ns()), "note": ""}


def _stamped(raw: str) -> tuple[int | None, str]:
    """The time of a line in nanoseconds, and what follows it."""
    found = _STAMP.match(raw)
    if found is None:
        return None, raw
    try:
        seconds = calendar.timegm(time.strptime(found[1], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None, raw
    zone = found[3]
    if zone != "Z":
        away = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        seconds -= away if zone[0] == "+" else -away
    nanoseconds = int((found[2] or "0").ljust(9, "0"))
    text = raw[found.end() :].lstrip(" ")
    # Podman's lines say on which stream they came, and whether they are whole.
    text = re.sub(r"^(?:stdout|stderr) [FP] ", "", text)
    return seconds * 10**9 + nanoseconds, text
