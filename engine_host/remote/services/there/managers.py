"""Units of the user and containers there, as systemd, Docker and Podman tell of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import Any

from engine_host.remote.install.there.places import Failed
from engine_host.remote.install.there.programs import QUICK, attempt, environment_of_programs

SYSTEMD, PODMAN = "systemd", "podman"
TOOLS = ("docker", PODMAN)
STOPPING = 120.0
_PROPERTIES = (
    "Id,Description,LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,Result,ExecMainStatus"
)
_UNIT_STATES = {
    "active": "running",
    "reloading": "running",
    "activating": "starting",
    "deactivating": "stopping",
    "inactive": "stopped",
    "failed": "failed",
}
_CONTAINER_STATES = {
    "running": "running",
    "created": "stopped",
    "configured": "stopped",
    "initialized": "stopped",
    "paused": "stopped",
    "restarting": "restarting",
    "removing": "stopping",
    "stopping": "stopping",
    "dead": "failed",
}
# The ends of a container that was told to end.
_ASKED_TO_END = (0, 130, 137, 143)
_MOST = 200
# Podman has systemd run the health check of a container as a unit with the container's number.
_CHECK_OF_CONTAINER = r"[0-9a-f]{64}(-[0-9a-f]+)?\.service"


def systemctl(*words: str, seconds: float = QUICK) -> subprocess.CompletedProcess[str] | None:
    """Ask the user's own service manager; None where it is missing or does not answer in time."""
    return attempt(["systemctl", "--user", *words], seconds)


def need(manager: str) -> None:
    """Stop a step whose manager of services cannot be used there."""
    told = usable(manager)
    if not told["usable"]:
        raise Failed("unsupported", "%s cannot be used there." % manager, manager=manager, error=told["why"])


def usable(manager: str) -> dict[str, Any]:
    """Tell whether a manager of services answers this user, and what it says where it does not."""
    program = "systemctl" if manager == SYSTEMD else manager
    if _program(program) is None:
        return {"manager": manager, "usable": False, "why": "%s is not installed" % program}
    asked = ["systemctl", "--user", "show-environment"] if manager == SYSTEMD else [manager, "ps", "--quiet"]
    said = attempt(asked, QUICK)
    if said is None:
        return {"manager": manager, "usable": False, "why": "%s does not answer" % program}
    lines = said.stderr.strip().splitlines()
    why = "" if said.returncode == 0 else lines[-1][:300] if lines else "exit code %d" % said.returncode
    return {"manager": manager, "usable": said.returncode == 0, "why": why}


def _program(name: str) -> str | None:
    return shutil.which(name, path=environment_of_programs().get("PATH", os.defpath))


def units(*names: str) -> list[dict[str, Any]]:
    """The services of this user's manager of these names; `*.service` are those that are loaded."""
    said = systemctl("show", "--all", "--property=" + _PROPERTIES, "--", *names)
    if said is None or said.returncode != 0:
        return []
    found = [
        dict(line.partition("=")[::2] for line in block.splitlines()) for block in said.stdout.split("\n\n")
    ]
    # One that is loaded is told of by its name, too.
    by_name = {
        one["Id"]: one
        for one in found
        if one.get("Id", "").endswith(".service") and not re.fullmatch(_CHECK_OF_CONTAINER, one["Id"])
    }
    return [_unit(one) for one in list(by_name.values())[:_MOST]]


def unit(name: str) -> dict[str, Any]:
    """One service, by its name without the ending."""
    found = units(name + ".service")
    return found[0] if found else _nothing(SYSTEMD, name)


def _unit(told: dict[str, str]) -> dict[str, Any]:
    state = _UNIT_STATES.get(told.get("ActiveState", ""), "unknown")
    detail = told.get("SubState", "")
    if detail == "auto-restart":
        state = "restarting"
    if state in ("failed", "restarting"):
        detail = "%s, exit code %s" % (told.get("Result", ""), told.get("ExecMainStatus", ""))
    file_state = told.get("UnitFileState", "")
    return {
        "manager": SYSTEMD,
        "name": told["Id"][: -len(".service")],
        "title": told.get("Description", "")[:200],
        "there": told.get("LoadState") not in (None, "not-found"),
        "state": state,
        "detail": detail[:200],
        "enabled": {"enabled": True, "enabled-runtime": True, "disabled": False}.get(file_state),
        "pid": _count(told.get("MainPID")) or None,
        "restarts": _count(told.get("NRestarts")),
    }


def containers(tool: str, names: list[str] | None = None) -> list[dict[str, Any]]:
    """The containers that a tool keeps for this user, or those that are named."""
    if names is None:
        listed = attempt([tool, "ps", "--all", "--quiet", "--no-trunc"], QUICK)
        names = listed.stdout.split()[:_MOST] if listed is not None and listed.returncode == 0 else []
    if not names:
        return []
    said = attempt([tool, "container", "inspect", *names], QUICK)
    try:
        found = json.loads(said.stdout) if said is not None else []
    except ValueError:
        return []
    return [_container(tool, one) for one in found if isinstance(one, dict)]


def container(tool: str, name: str) -> dict[str, Any]:
    """One container by its name."""
    found = containers(tool, [name])
    return found[0] if found else _nothing(tool, name)


def service(manager: str, name: str) -> dict[str, Any]:
    """One service of a manager."""
    return unit(name) if manager == SYSTEMD else container(manager, name)


def _nothing(manager: str, name: str) -> dict[str, Any]:
    return {"manager": manager, "name": name, "there": False, "state": "stopped", "detail": ""}


def _container(tool: str, told: dict[str, Any]) -> dict[str, Any]:
    state = _table(told.get("State"))
    config = _table(told.get("Config"))
    labels = _table(config.get("Labels"))
    health = _table(state.get("Health") or state.get("Healthcheck")).get("Status")
    word = str(state.get("Status", "")).lower()
    code = state.get("ExitCode")
    known = _CONTAINER_STATES.get(word, "unknown")
    detail = word
    if word in ("exited", "stopped"):
        known = "stopped" if code in _ASKED_TO_END else "failed"
        detail = "%s, exit code %s" % (word, code)
    policy = _table(_table(told.get("HostConfig")).get("RestartPolicy")).get("Name")
    if state.get("Error"):
        detail += ": %s" % state["Error"]
    return {
        "manager": tool,
        "name": str(told.get("Name", "")).lstrip("/")[:200],
        "title": "",
        "there": True,
        "state": known,
        "detail": detail[:300],
        "enabled": _comes_back(tool, policy),
        # Of one that ended it is what the last check said while it ran.
        "health": str(health)[:50] if health and known == "running" else None,
        "pid": state.get("Pid") if isinstance(state.get("Pid"), int) and state.get("Pid") else None,
        "restarts": told.get("RestartCount") if isinstance(told.get("RestartCount"), int) else None,
        "image": str(told.get("ImageName") or config.get("Image") or "")[:300] or None,
        "deployment": str(labels.get("dev.sndr.deployment", ""))[:200],
    }


def _comes_back(tool: str, policy: str | None) -> bool | None:
    """Tell whether a container runs again after a restart of the machine.

    The daemon of Docker sees to that. Podman has none; a unit of it does so for `always`, where enabled.
    """
    if policy is None or (tool == PODMAN and policy == "always"):
        return None
    return tool != PODMAN and policy in ("always", "unless-stopped")


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 12 else None


def ends_with_session(manager: str) -> bool:
    """Tell whether what this manager runs ends with the last session of its user, unless that lingers."""
    return manager == SYSTEMD or (manager == PODMAN and os.geteuid() != 0)


def path_of_units() -> str | None:
    """The PATH that units of this user have, which is not that of a login."""
    said = systemctl("show-environment")
    lines = said.stdout.splitlines() if said is not None else []
    return next((line[len("PATH=") :] for line in lines if line.startswith("PATH=")), None)


def lasting() -> tuple[str, bool | None]:
    """The user, and whether its services outlive a logout; None where nobody tells."""
    said = attempt(["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"], QUICK)
    if said is None or said.returncode != 0:
        return str(os.getuid()), None
    return str(os.getuid()), said.stdout.strip() == "yes"
