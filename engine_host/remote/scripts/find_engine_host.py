"""Runs on another machine: tells where this user's engine host listens there, and its token, as JSON.

Standard library only, for any Python from 3.6 on; it changes nothing.
"""

import json
import os
import socket
import stat
import subprocess
import sys
import time

_LARGEST = 4096
_UNIT = "sndr-host.service"
_LONGEST_START = 120.0
_FEW = 3


def data_folders() -> "list[str]":
    """Return the folders in which the engine host keeps its data, as it looks for them itself."""
    home = os.environ.get("SNDR_HOME")
    if home:
        return [os.path.join(os.path.abspath(os.path.expanduser(home)), "data")]
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return [os.path.join(base, "sndr"), os.path.expanduser("~/Library/Application Support/sndr")]


def private(folder: str) -> bool:
    """Return True for a folder of this user that nobody else may enter."""
    about = os.lstat(folder)
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077


def listens(path: str) -> bool:
    """Return True if somebody listens at a socket."""
    probe = socket.socket(socket.AF_UNIX)
    probe.settimeout(5.0)
    try:
        probe.connect(path)
    except OSError:
        return False
    finally:
        probe.close()
    return True


def starting() -> bool:
    """Return True if the service of the engine host began a moment ago, as after a restart of the machine."""
    words = "--property=ActiveState,ActiveEnterTimestampMonotonic,NRestarts"
    asked = ["systemctl", "--user", "show", words, _UNIT]
    try:
        said = subprocess.run(
            asked, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=5.0
        )
        told = dict(line.partition("=")[::2] for line in said.stdout.decode("utf-8", "replace").splitlines())
        began = int(told["ActiveEnterTimestampMonotonic"]) / 1e6
        again = int(told.get("NRestarts") or 0)
    except (OSError, ValueError, KeyError, subprocess.SubprocessError):
        return False
    # One that is damaged ends and begins for good.
    active = told.get("ActiveState") in ("active", "activating") and again < _FEW
    return active and time.clock_gettime(time.CLOCK_MONOTONIC) - began < _LONGEST_START


def not_running(data: str, run: str) -> "dict[str, str]":
    """Return what there is to tell of one that does not run: it was installed, or started by hand."""
    # Also where what the link leads to is gone: an update makes it anew.
    if not os.path.lexists(os.path.join(data, "host", "current")):
        return {"state": "ended", "run": run}
    return {"state": "starting" if starting() else "installed", "run": run}


def found() -> "dict[str, str]":
    """Return what to tell: `state` is running, starting, installed, ended, locked, unsafe or none."""
    for data in data_folders():
        try:
            with open(os.path.join(data, "host.claim"), encoding="utf-8") as file:
                run = json.loads(file.read(_LARGEST))["run"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        control = os.path.join(run, "control.sock")
        try:
            if not private(run):
                return {"state": "unsafe", "run": run}
        except OSError:
            return not_running(data, run)
        if not listens(control):
            return not_running(data, run)
        try:
            with open(os.path.join(run, "token"), encoding="utf-8") as file:
                token = file.read(_LARGEST).strip()
            if not token:
                raise ValueError("the file of the token is empty")
        except (OSError, ValueError) as error:
            return {"state": "locked", "run": run, "why": str(error)}
        return {"state": "running", "run": run, "socket": control, "token": token}
    told = [not_running(data, "") for data in data_folders()]
    return {"state": next((one["state"] for one in told if one["state"] != "ended"), "none")}


if __name__ == "__main__":
    # A shell's start files may have printed half a line before.
    sys.stdout.write("\n" + json.dumps(found()) + "\n")
