"""The GPUs of a start: those that a person named, or the freest that suffice."""

import re
from collections.abc import Callable, Sequence

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr

# As the driver gives them; a card that tells none has a stand-in, which CUDA does not know.
_UUID = re.compile(r"(GPU|MIG)-[0-9A-Za-z/-]{4,}")
_SHORTEST = 8


def named_gpus(words: Sequence[str], gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return the GPUs that are named by UUID, its beginning, number or name, in the driver's order.

    Raises HostError(setting_invalid) for one that is not here, is meant twice or could be several.
    """
    found: list[Gpu] = []
    for word in words:
        meant = _meant(word, gpus)
        if not meant:
            raise _wrong(tr("There is no GPU {word} here.", word=word), word, gpus)
        if len(meant) > 1:
            raise _wrong(tr("{count} GPUs are called {word}.", count=len(meant), word=word), word, gpus)
        if meant[0] in found:
            raise _wrong(tr("GPU {index} is named twice.", index=meant[0].index), word, gpus)
        found += meant
    return tuple(sorted(found, key=lambda gpu: gpu.index))


def _meant(word: str, gpus: Sequence[Gpu]) -> list[Gpu]:
    if word.isdigit():
        return [gpu for gpu in gpus if gpu.index == int(word)]
    lower = word.lower()
    if exact := [gpu for gpu in gpus if gpu.uuid.lower() == lower]:
        return exact
    names = [gpu for gpu in gpus if gpu.name.lower().removeprefix("nvidia ") == lower.removeprefix("nvidia ")]
    begins = len(word) >= _SHORTEST
    return names or [gpu for gpu in gpus if begins and gpu.uuid.lower().startswith(lower)]


def _wrong(message: str, word: str, gpus: Sequence[Gpu]) -> HostError:
    listed = "; ".join(f"{gpu.index}: {gpu.name}, {gpu.uuid}" for gpu in gpus)
    return HostError(
        Reason.SETTING_INVALID,
        message,
        cause=tr("This machine has {listed}.", listed=listed) if listed else "This machine has no GPU.",
        fix=Fix(text="Name each one once, by its number or its UUID.", command="nvidia-smi -L"),
        evidence={"gpu": word, "gpus": [gpu.uuid for gpu in gpus]},
    )


def refuse_gpus(words: Sequence[str], label: str) -> None:
    """Raise HostError(setting_invalid) where GPUs are named for an engine that uses none of NVIDIA's."""
    if words:
        raise HostError(
            Reason.SETTING_INVALID,
            tr("{label} uses no GPU of NVIDIA's, and {words} is named.", label=label, words=", ".join(words)),
            fix="Leave the GPUs out, or take an engine that was built for them.",
            evidence={"gpus": list(words)},
        )


def freest(gpus: Sequence[Gpu], count: int) -> tuple[Gpu, ...]:
    """Return so many GPUs with the most free memory, in the driver's order."""
    chosen = sorted(gpus, key=lambda gpu: (-gpu.memory_free, gpu.index))[:count]
    return tuple(sorted(chosen, key=lambda gpu: gpu.index))


def freest_that_suffice(gpus: Sequence[Gpu], suffice: Callable[[Sequence[Gpu]], bool]) -> tuple[Gpu, ...]:
    """Return the fewest of the freest GPUs that are enough; all where no number of them is."""
    for count in range(1, len(gpus)):
        chosen = freest(gpus, count)
        if suffice(chosen):
            return chosen
    return tuple(gpus)


def visible_devices(gpus: Sequence[Gpu], *, by_uuid: bool = True) -> dict[str, str]:
    """Return the variables that show an engine these GPUs alone.

    By UUID they stay the same when GPUs are added or fail; not every version of vLLM understands that.
    """
    uuids = by_uuid and all(_UUID.fullmatch(gpu.uuid) for gpu in gpus)
    names = [gpu.uuid if uuids else str(gpu.index) for gpu in gpus]
    # The driver's numbers; CUDA by itself counts the fastest GPU first.
    return {"CUDA_VISIBLE_DEVICES": ",".join(names), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
