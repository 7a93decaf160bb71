#!/usr/bin/env python3
"""Asks an engine whether it still computes, and restarts its service when it hangs.

Standard library only: it runs on machines that have nothing else of this program. A full queue is no hang: an
engine that has produced tokens since the last check is busy. What was seen last time is a small file in the
runtime folder, so a restart of the machine begins anew. It ends with 0 unless it cannot do its work.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

# Of vLLM, llama.cpp and SGLang: tokens written and read since the start.
_TOKENS = re.compile(
    r"^(?:vllm:(?:generation|prompt)_tokens_total|llamacpp:(?:tokens_predicted|prompt_tokens)_total"
    r"|sglang:(?:generation|prompt)_tokens_total)(?:\{[^}]*\})?\s+([0-9.eE+]+)",
    re.MULTILINE,
)
_QUICK = 10.0


def main() -> int:
    """One check."""
    given = arguments()
    since = running_since(given.unit)
    state = Path(os.environ.get("XDG_RUNTIME_DIR", "/run")) / f"{given.unit}.watchdog.json"
    if since is None:
        # Not running, or on its way up or down: that is for systemd.
        state.unlink(missing_ok=True)
        return 0
    known = read(state)
    if known.get("since") != since:
        known = {"since": since, "answered": False, "failures": 0, "tokens": None}
    well, why = ask(given)
    tokens = tokens_of(given) if not well else None
    busy = tokens is not None and known["tokens"] is not None and tokens > known["tokens"]
    known["tokens"] = tokens
    if well:
        known |= {"answered": True, "failures": 0}
    elif busy:
        print(f"{given.unit} is busy: {why}, and it goes on computing")
        known["failures"] = 0
    elif not known["answered"] and uptime() - since < given.start_seconds:
        print(f"{given.unit} is still starting: {why}")
    else:
        known["failures"] += 1
        print(f"{given.unit}: {why} ({known['failures']} of {given.failures})")
    if known["failures"] < given.failures:
        write(state, known)
        return 0
    print(f"{given.unit} hangs and is restarted")
    state.unlink(missing_ok=True)
    return systemctl("restart", given.unit).returncode


def arguments() -> argparse.Namespace:
    """Return the arguments that the unit gives."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("unit", "address", "health", "path", "body"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("start-seconds", "answer-seconds", "failures"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--key-variable", default="")
    return parser.parse_args()


def ask(given: argparse.Namespace) -> tuple[bool, str]:
    """Return True if the engine is well and answers the smallest request; else False and the reason."""
    try:
        with opened(given, given.health, None, _QUICK):
            pass
    except OSError as error:
        return False, f"it does not say that it is well ({said(error)})"
    try:
        with opened(given, given.path, given.body.encode(), given.answer_seconds) as answer:
            body = json.load(answer)
    except (OSError, ValueError) as error:
        return False, f"it does not answer ({said(error)})"
    if not any(body.get(key) for key in ("choices", "data", "results")):
        return False, "its answer is empty"
    return True, ""


def tokens_of(given: argparse.Namespace) -> float | None:
    """All tokens that it has read and written; None where it does not tell."""
    try:
        with opened(given, "/metrics", None, _QUICK) as answer:
            text = answer.read().decode("utf-8", "replace")
    except OSError:
        return None
    found = [float(number) for number in _TOKENS.findall(text)]
    return sum(found) if found else None


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


def running_since(unit: str) -> float | None:
    """When a unit became active, in seconds since the machine started; None while it is not."""
    shown = systemctl("show", "--property=ActiveState,ActiveEnterTimestampMonotonic", unit).stdout
    facts = dict(line.partition("=")[::2] for line in shown.splitlines())
    if facts.get("ActiveState") != "active":
        return None
    return int(facts.get("ActiveEnterTimestampMonotonic") or 0) / 1e6


def systemctl(*words: str) -> "subprocess.CompletedProcess[str]":
    """Ask the service manager of whoever runs this."""
    scope = [] if os.geteuid() == 0 and "XDG_RUNTIME_DIR" not in os.environ else ["--user"]
    return subprocess.run(
        ["systemctl", *scope, *words],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def uptime() -> float:
    """The clock that systemd's monotonic times are from."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def read(path: Path) -> dict[str, Any]:
    """Return the state that the last check saved; empty when it cannot be read."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write(path: Path, known: dict[str, Any]) -> None:
    """Keep it for the next check: beside, then renamed."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(known), encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
