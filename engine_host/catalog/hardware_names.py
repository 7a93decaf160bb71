"""A GPU of the catalogue by what people call it: `RTX 3090`, `rtx3090`, `3090`, or the driver's name."""

import re
from collections.abc import Mapping

from engine_host.protocol.catalog import HardwareEntry

# What is left out of a name without making it another card's.
_BRANDS = re.compile(r"nvidia|geforce|tesla|rtx|gtx")
_PLAIN = re.compile(r"[^a-z0-9]+")
_MEMORY = re.compile(r"\d+gb")


def called(text: str, known: Mapping[str, HardwareEntry]) -> list[str]:
    """The ids that a name stands for: one if it is clear, several that differ in memory alone, or none."""
    if text in known:
        return [text]
    wanted = _key(text)
    if not wanted:
        return []
    exact: list[str] = []
    sizes: list[str] = []
    for hardware_id, entry in known.items():
        keys = {_key(name) for name in (hardware_id, entry.title, *entry.names)}
        if wanted in {_key(hardware_id), _key(entry.title)}:
            exact.append(hardware_id)
        elif any(wanted == key or _is_size(key, wanted) or _is_size(wanted, key) for key in keys):
            sizes.append(hardware_id)
    if exact:
        return exact
    # Of `4060 ti 8gb` the driver's name is that of the card with 16, too.
    return [one for one in sizes if _gigabytes(text) in {None, round(known[one].vram_mib.value / 1024)}]


def _is_size(longer: str, name: str) -> bool:
    """Tell whether one name is the other with an amount of memory behind it."""
    return longer.startswith(name) and _MEMORY.fullmatch(longer.removeprefix(name)) is not None


def _gigabytes(text: str) -> int | None:
    found = re.search(r"(\d+)\s*gi?b\b", text.lower())
    return int(found[1]) if found else None


def _key(text: str) -> str:
    return _BRANDS.sub("", _PLAIN.sub("", text.lower()))
