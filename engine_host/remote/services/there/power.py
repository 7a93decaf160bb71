"""Power limits of the GPUs there, as NVIDIA's own program reads and sets them."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from engine_host.remote.install.there.places import Failed
from engine_host.remote.install.there.programs import QUICK, attempt
from engine_host.remote.services.there.running import ended

_FIELDS = "index,uuid,name,power.limit,power.default_limit,power.min_limit,power.max_limit,power.draw"
_PROGRAM = "nvidia-smi"


def power(_given: dict[str, Any]) -> dict[str, Any]:
    """Tell the limit of each GPU, and whether this user may set it."""
    gpus, why = _gpus()
    if not gpus:
        return {"gpus": [], "permitted": False, "why": why or "there is no NVIDIA GPU"}
    permitted, why = _permitted()
    return {"gpus": gpus, "permitted": permitted, "why": why}


def set_power(given: dict[str, Any]) -> dict[str, Any]:
    """Set the limit of a GPU and read it back."""
    permitted, why = _permitted()
    if not permitted:
        raise Failed("not_writable", "This user may not set power limits there.", error=why)
    argv = [*_as_root(), _PROGRAM, "--id=" + given["uuid"], "--power-limit=%d" % given["watts"]]
    said = attempt(argv, QUICK * 2)
    if said is None or said.returncode != 0:
        lines = [] if said is None else (said.stderr + said.stdout).strip().splitlines()[-12:]
        raise Failed("not_writable", "The limit was not set.", lines=lines or [ended(said)], argv=argv)
    gpus, why = _gpus()
    found = next((one for one in gpus if one["uuid"] == given["uuid"]), None)
    limit = None if found is None else found["limit"]
    if limit is None or abs(limit - given["watts"]) >= 1:
        raise Failed(
            "verification_failed", "The limit reads otherwise than it was set.", reads=limit, error=why
        )
    return {"gpu": found}


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["sudo", "-n"]


def _permitted() -> tuple[bool, str]:
    if os.geteuid() == 0:
        return True, ""
    # Sets nothing: it is asked whether sudo would run just this program without a password.
    said = attempt(["sudo", "-n", "--list", _PROGRAM], QUICK)
    if said is not None and said.returncode == 0:
        return True, ""
    return (
        False,
        "it needs root, and sudo does not run %s for this user without a password" % _PROGRAM,
    )


def _gpus() -> tuple[list[dict[str, Any]], str]:
    said = _asked()
    if said is None or said.returncode != 0:
        return [], "%s: %s" % (_PROGRAM, ended(said))
    found = []
    for line in said.stdout.splitlines()[:64]:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < 8 or not cells[0].isdecimal():
            continue
        # A name may have a comma; what follows it is counted from the end.
        limit, default, least, most, draw = map(_watts, cells[-5:])
        found.append(
            {
                "index": int(cells[0]),
                "uuid": cells[1][:100],
                "name": ",".join(cells[2:-5])[:200],
                "limit": limit,
                "default": default,
                "minimum": least,
                "maximum": most,
                "draw": draw,
            }
        )
    return found, ""


def _asked() -> subprocess.CompletedProcess[str] | None:
    return attempt([_PROGRAM, "--query-gpu=" + _FIELDS, "--format=csv,noheader,nounits"], QUICK)


def _watts(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if 0 <= value < 1e5 else None
