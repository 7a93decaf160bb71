"""Checks of a setting that is given: can it take effect here, and does it mean anything."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine_host.core.addresses import check_own
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.gpu_trace.format import check
from engine_host.core.outside import files
from engine_host.core.settings import EndpointSettings
from engine_host.gateway.access.tls import tls_context
from engine_host.overlay.patch_catalog import BUILT_IN, PatchCatalog
from engine_host.protocol.launch.plans import Finding


def check_endpoint(values: Mapping[str, Any], host: str, port: int | None) -> None:
    """Refuse an address or a port that the endpoint could not take; may ask the name service.

    `host` is where the endpoint is or would be, `port` the one that it holds now. Raises
    HostError(setting_invalid) and HostError(port_in_use), and nothing was changed then.
    """
    given = values.get("endpoint.host")
    if isinstance(given, str) and given:
        _check("endpoint.host", given, given, 0)
        host = given
    wanted = values.get("endpoint.port")
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        return
    # What is no port at all is refused with the other settings, by its type and range.
    if 0 < wanted < 65536 and wanted != port:
        _check("endpoint.port", wanted, host, wanted)


def _check(name: str, value: object, host: str, port: int) -> None:
    try:
        check_own(host, port)
    except HostError as error:
        problem = error.problem
        raise HostError.from_problem(
            problem.model_copy(
                update={
                    "message": f"{name} cannot be {value}: {problem.message} Nothing was changed.",
                    "evidence": {**problem.evidence, "key": name},
                }
            )
        ) from error


def check_tls(values: Mapping[str, Any], now: EndpointSettings) -> None:
    """Refuse files that no certificate and its key are. Raises HostError(setting_invalid)."""
    named = {"certificate": now.tls_certificate, "key": now.tls_key}
    for part in named:
        if (name := f"endpoint.tls_{part}") in values:
            value = values[name]
            named[part] = value if isinstance(value, str) and value else None
    try:
        tls_context(named["certificate"], named["key"])
    except HostError as error:
        problem = error.problem
        message = f"{problem.message} Nothing was changed."
        raise HostError.from_problem(problem.model_copy(update={"message": message})) from error


def check_trace(values: Mapping[str, Any]) -> None:
    """Refuse a file that is no recorded trace; reads all of it. Raises HostError(setting_invalid)."""
    given = values.get("host.gpu_trace")
    if isinstance(given, str) and given:
        check(files.expanded(given))


def doubts(
    values: Mapping[str, Any], own_patches: Path, now: EndpointSettings | None = None
) -> tuple[Finding, ...]:
    """Return what was set and means nothing now: folders that do not exist, patches that nobody knows.

    None is refused: a disk may be away for the moment, and a patch may come with an update.
    """
    found = [
        _doubt("models.folders", name, f"There is no folder {name}; nothing is found there.")
        for name in _texts(values.get("models.folders"))
        if not os.path.isdir(files.expanded(name))
    ]
    parts = ("endpoint.tls_certificate", "endpoint.tls_key")
    if now is not None and any(values.get(name) for name in parts):
        missing = [name for name in parts if not getattr(now, name.removeprefix("endpoint."))]
        found += [_doubt(name, "", f"TLS begins when {name} is set too.") for name in missing]
    names = {key: listed for key in ("patches.off", "patches.on") if (listed := _texts(values.get(key)))}
    if names:
        catalogue = PatchCatalog.load((BUILT_IN, own_patches))
        for key, listed in names.items():
            for name in listed:
                try:
                    catalogue.named(name)
                except HostError as error:
                    found.append(_doubt(key, name, error.problem.sentence()))
    return tuple(found)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []


def _doubt(key: str, name: str, message: str) -> Finding:
    return finding("setting_without_effect", problem=message, key=key, value=name)
