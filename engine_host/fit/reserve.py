"""The memory that a start leaves to a display, the driver and other programs, and what keeps it free."""

from engine_host.core.sizes import size_text
from engine_host.fit.estimate import Estimate
from engine_host.fit.start import Start
from engine_host.fit.vllm import share
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind

DESKTOP = 2**30
"""The bytes that a card which drives a display holds for it, about."""


def left_of(start: Start, found: Estimate) -> int:
    """Return the bytes of the fullest device that nobody holds while the start runs."""
    beyond = sum(part.bytes for part in found.parts if part.beyond)
    # vLLM fills its share to the end; llama.cpp takes what it needs.
    fills = start.engine is EngineKind.VLLM and not start.cpu
    return min(
        device.total - device.taken - (share(device, start) + beyond if fills else found.needed)
        for device in start.devices
    )


def reserve_words(start: Start, found: Estimate, *, named: bool) -> str:
    """Return what is left to others and what keeps it free; `named` GPUs are not of this machine."""
    left = size_text(max(left_of(start, found), 0))
    if start.cpu:
        return tr("Left to others: {left} of main memory; what they hold now is counted.", left=left)
    said = (
        tr(
            "Left to others on the fullest GPU: {left}; vLLM keeps {share:.0%} of the GPU free (gpu_memory).",
            left=left,
            share=max(1 - start.gpu_memory, 0.0),
        )
        if start.engine is EngineKind.VLLM
        else tr("Left to others on the fullest GPU: {left}; llama.cpp keeps nothing free.", left=left)
    )
    if not named:
        counted = tr("What others hold now is counted, a display too.")
    elif any(device.taken for device in start.devices):
        counted = tr("What others hold is counted as given.")
    else:
        counted = tr(
            "Nothing is counted for a display, the driver and other programs; a desktop takes about "
            "{desktop}.",
            desktop=size_text(DESKTOP),
        )
    return tr("{said} {counted}", said=said, counted=counted)
