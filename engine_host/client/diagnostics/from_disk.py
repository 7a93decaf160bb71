"""The part of a report that files of this machine tell, with or without a running host."""

import contextlib
import importlib.metadata
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from engine_host import __version__
from engine_host.client.diagnostics.collected import Collected
from engine_host.client.diagnostics.from_host import told_autopsy, told_job, told_start
from engine_host.client.diagnostics.known_names import documents, learn_from_value
from engine_host.client.diagnostics.log_ends import ENGINE_LOGS, end_of_log, log_files, newest_files
from engine_host.client.diagnostics.quoting_logs import quotes, quoting_option
from engine_host.core.errors import HostError
from engine_host.core.outside import files, json_text
from engine_host.core.paths import Folders
from engine_host.core.processes.crash_marks import reports
from engine_host.core.settings import SettingsFile
from engine_host.protocol.base import PROTOCOL_MAJOR, PROTOCOL_MINOR

CRASHES = "crashes/"
"""The folder of a report that holds the reports of crashes."""
_OF_A_HOST = (
    "engines/patches.json",
    "diagnosis.json",
    "events.jsonl",
    "telemetry.jsonl",
)
_DRIVER = Path("/proc/driver/nvidia/version")
_PLANNED = {"id", "plan"}
_STARTS = 30
_RECORDS = 20
_AUTOPSIES = 3
_LARGEST_AUTOPSY = 8 << 20


def versions() -> dict[str, Any]:
    """Return the versions of this program, its Python, the system, the driver and the packages."""
    # A version with four numbers looks like an address where nothing says what it is of.
    # Each question to a distribution reads and parses its file anew.
    told = (one.metadata for one in importlib.metadata.distributions())
    packages = {f"{one['Name']}=={one['Version']}" for one in told if one["Name"]}
    try:
        driver: str | None = files.read_text(_DRIVER, 1 << 16).strip()
    except (OSError, UnicodeDecodeError):
        driver = None
    return {
        "program": __version__,
        "protocol": f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}",
        "python": sys.version,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
        "distribution": _distribution(),
        "nvidia_driver": driver,
        "packages": sorted(packages),
    }


def disks(folders: Folders) -> dict[str, dict[str, int] | None]:
    """Return the room of the disks that hold the program's folders, in bytes."""
    return {name: _disk(path) for name, path in (("data", folders.data), ("cache", folders.cache))}


def tell_of_logs(folders: Folders, into: Collected) -> None:
    """Add the ends of the logs; one that cannot be read, or quotes requests, is named as missing."""
    try:
        found = list(log_files(folders))
    except OSError as error:
        into.lack("logs", f"The folder of logs cannot be listed: {error.strerror}.")
        return
    if not found:
        into.lack("logs", "No log was written yet.")
    plans = _plans(folders)
    for name, path in found:
        if option := quoting_option(plans.get(path.stem, {})):
            into.lack(name, f"Left out: {option} of its start has prompts and answers written into the log.")
            continue
        try:
            text = end_of_log(path)
        except OSError as error:
            into.lack(name, f"It cannot be read: {error.strerror}.")
            continue
        if name.startswith(ENGINE_LOGS) and quotes(text):
            into.lack(name, "Left out: the engine quotes requests in it.")
        else:
            into.add_text(name, text)


def tell_of_autopsies(folders: Folders, into: Collected) -> None:
    """Add the records of the engines that died last, without who asked them."""
    try:
        found = newest_files(folders.autopsies, _AUTOPSIES, suffix=".json")
    except OSError as error:
        into.lack("autopsies", f"The folder cannot be listed: {error.strerror}.")
        return
    for path in found:
        try:
            record = json_text.read_object(path, _LARGEST_AUTOPSY)
        except (OSError, ValueError) as error:
            into.lack(f"autopsies/{path.name}", f"It cannot be read: {error}.")
            continue
        learn_from_value(record, into.mask)
        into.add_value(f"autopsies/{path.name}", told_autopsy(record))


def tell_of_crashes(folders: Folders, into: Collected) -> None:
    """Add the newest reports of windows and hosts that did not end in order; mostly there are none."""
    for name, text in reports(folders.crashes):
        into.add_text(f"{CRASHES}{name}", text)


def tell_without_host(folders: Folders, why: str, into: Collected) -> None:
    """Add what files tell of settings, machine, engines and starts; name what only a host knows."""
    parts: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("settings.json", lambda: _settings(folders)),
        ("machine.json", _machine),
        ("engines/installed.json", lambda: _installed(folders.cache / "vllm-environments")),
        (
            "engines/starts.json",
            lambda: [told_start(one) for one in documents(folders.store, "engine", _STARTS)],
        ),
        ("jobs.json", lambda: [told_job(one) for one in documents(folders.store, "job", _STARTS)]),
    )
    for name, read in parts:
        try:
            into.add_value(name, read())
        except HostError as error:
            into.lack(name, error.problem.sentence())
        except OSError as error:
            into.lack(name, f"It cannot be read: {error.strerror or error}.")
        except (sqlite3.Error, ValueError) as error:
            into.lack(name, f"It cannot be read: {error}.")
    for name in _OF_A_HOST:
        into.lack(name, f"Only a running host knows this. {why}")


def _plans(folders: Folders) -> dict[str, dict[str, Any]]:
    """Return the plans of the starts that are on record, by the ids of their engines."""
    with contextlib.suppress(OSError, sqlite3.Error, ValueError):
        engines = (one.get("engine") for one in documents(folders.store, "engine"))
        return {
            str(one["id"]): one["plan"] for one in engines if isinstance(one, dict) and one.keys() >= _PLANNED
        }
    return {}


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _settings(folders: Folders) -> dict[str, Any]:
    file = SettingsFile(folders.settings)
    file.load_what_holds()
    wrong = file.problem.model_dump(mode="json") if file.problem is not None else None
    return {
        "file": str(file.path),
        "problem": wrong,
        "settings": [one.model_dump(mode="json") for one in file.settings()],
    }


def _machine() -> dict[str, Any]:
    memory = psutil.virtual_memory()
    return {
        "processor": platform.machine(),
        "cpu_cores": psutil.cpu_count(logical=False),
        "cpu_threads": os.cpu_count(),
        "ram_total": memory.total,
        "ram_available": memory.available,
        "gpus": "only a running host reads them",
    }


def _disk(folder: Path) -> dict[str, int] | None:
    """Return the room of the disk that a folder is on, or would be."""
    for place in (folder, *folder.parents):
        if os.path.isdir(place):
            with contextlib.suppress(OSError):
                usage = shutil.disk_usage(place)
                return {"total": usage.total, "free": usage.free}
    return None


def _installed(folder: Path) -> dict[str, Any]:
    """Return the records of vLLM's environments, by their ids."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("[!.]*"))[:_RECORDS]:
        try:
            found[path.name] = json_text.read_object(path / "installation.json")
        except (OSError, ValueError) as error:
            found[path.name] = {"problem": f"its record cannot be read: {error}"}
    return {"vllm": found}
