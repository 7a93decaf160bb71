"""Why a machine lists no GPU, by what its nvidia-smi ended with and what was seen around its driver."""

from collections.abc import Mapping

from engine_host.core.diagnosis.gpu_absence import (
    NO_LIBRARY,
    PciCard,
    Surroundings,
    explained,
    module_version,
)
from engine_host.core.visible import visible
from engine_host.protocol.launch.plans import Finding
from engine_host.remote.facts.parts import Part

_MOST, _LONGEST = 64, 100


def no_gpu_of(parts: Mapping[str, Part]) -> Finding | None:
    """Return why no GPU is listed there; None where it was not looked at, or some are listed."""
    around, asked = parts.get("surroundings"), parts.get("gpus")
    if around is None or around.code != 0 or (asked is not None and asked.code == 0 and asked.text.strip()):
        return None
    # nvidia-smi ends with the code of NVML.
    code = NO_LIBRARY if asked is None else asked.code
    return explained(code, f"nvidia-smi: {code}", seen_in(around.text))[1]


def seen_in(text: str) -> Surroundings:
    """Return what the lines of the program that reads facts say; what makes no sense says nothing."""
    found: dict[str, list[list[str]]] = {}
    for line in text.splitlines()[:_MOST]:
        word, *values = visible(line).split() or [""]
        found.setdefault(word, []).append([value[:_LONGEST] for value in values])

    def first(word: str) -> str:
        return " ".join(found.get(word, [[]])[0])

    cards = [
        PciCard(row[0], row[1].removeprefix("0x"), row[2].removeprefix("0x"), *row[3:4])
        for row in found.get("card", ())
        if len(row) >= 3
    ]
    closed = [row for row in found.get("closed", ()) if len(row) == 2]
    return Surroundings(
        system=first("system") or "Linux",
        user=first("user"),
        module=module_version(first("module")),
        library=first("library").rpartition(".so.")[2] or None,
        nodes=tuple(row[0] for row in found.get("node", ()) if row),
        closed=tuple(row[1] for row in closed),
        group=closed[0][0] if closed else "",
        cards=tuple(cards) if "bus" in found else None,
        container=first("container"),
        on_windows="windows" in found,
    )
