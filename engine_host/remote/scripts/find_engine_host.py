"""Runs on another machine: tells where this user's engine host listens there, and its token, as JSON.

Standard library only, for any Python from 3.6 on; it changes nothing.
"""

import fcntl
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


def is_there(path: str) -> bool:
    """Return True for what is there, also a link that leads nowhere. Raises OSError where nobody can say."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def held(claim_file: str) -> bool:
    """Return True while a host has these data: one that does not listen starts, or ends."""
    try:
        with open(claim_file, encoding="utf-8") as file:
            # A host that begins in this very moment tries again.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def not_listening(data: str, claim: "dict[str, object]") -> "dict[str, str]":
    """Return what there is to tell of one that does not listen. Raises OSError where nobody can say."""
    run, claim_file = str(claim.get("run") or ""), os.path.join(data, "host.claim")
    if held(claim_file):
        return {"state": "turning", "run": run, "pid": str(claim.get("pid") or "")}
    # Also where what the link leads to is gone: an update makes it anew.
    if not is_there(os.path.join(data, "host", "current")):
        return {"state": "ended" if is_there(claim_file) else "none", "run": run}
    return {"state": "starting" if starting() else "installed", "run": run}


def claim_of(data: str) -> "dict[str, object]":
    """Return what the host that has this data says of itself; nothing where none does."""
    try:
        with open(os.path.join(data, "host.claim"), encoding="utf-8") as file:
            claim = json.loads(file.read(_LARGEST))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        # One that ended in order left it empty.
        return {}
    return claim if isinstance(claim, dict) else {}


def found() -> "dict[str, str]":
    """Return what to tell: `state` is running, starting, installed, ended, locked, unsafe or none.

    `turning` is one that starts or ends, `unreadable` a folder of which nobody can say what is in it.
    """
    folders = data_folders()
    try:
        told = [found_in(data) for data in folders]
    except OSError as error:
        return {"state": "unreadable", "run": "", "why": str(error)}
    none = {"state": "none", "run": "", "data": folders[0]}
    return next((one for one in told if one["state"] != "none"), none)


def found_in(data: str) -> "dict[str, str]":
    """Return what to tell of the host with these data. Raises OSError where nobody can say."""
    claim = claim_of(data)
    run = str(claim.get("run") or "")
    control = os.path.join(run, "control.sock")
    try:
        if run and not private(run):
            return {"state": "unsafe", "run": run}
    except OSError:
        run = ""
    if not run or not listens(control):
        return not_listening(data, claim)
    try:
        with open(os.path.join(run, "token"), encoding="utf-8") as file:
            token = file.read(_LARGEST).strip()
        if not token:
            raise ValueError("the file of the token is empty")
    except (OSError, ValueError) as error:
        return {"state": "locked", "run": run, "why": str(error)}
    return {"state": "running", "run": run, "socket": control, "token": token}


if __name__ == "__main__":
    # A shell's start files may have printed half a line before.
    sys.stdout.write("\n" + json.dumps(found()) + "\n")
