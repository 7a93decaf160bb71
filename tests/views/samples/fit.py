"""Answers of the memory calculator for view tests, like those that a host sends."""

from typing import Any

from engine_host.protocol.base import Severity
from engine_host.protocol.launch.fit import (
    Advice,
    Change,
    CurvePoint,
    DeviceFit,
    FitPart,
    FitReport,
    FitRequest,
    KvChoice,
    PartSource,
    Roofline,
    Verdict,
)
from engine_host.protocol.launch.plans import EngineKind

GIB = 2**30
MIB = 2**20
_BYTES = {"auto": 65_536, "f16": 65_536, "fp8": 32_768, "q8_0": 34_816, "turboquant_k8v4": 24_832}


def device(number: int = 0, kv: int = 4 * GIB, **changes: Any) -> DeviceFit:
    """A 24 GB card with weights, an estimate and a KV cache."""
    parts = (
        FitPart(name="weights", size=16 * GIB, low=16 * GIB, high=16 * GIB, source=PartSource.FILES),
        FitPart(
            name="CUDA graphs",
            size=600 * MIB,
            low=200 * MIB,
            high=1500 * MIB,
            source=PartSource.ESTIMATE,
            note="captured batch sizes",
        ),
        FitPart(name="KV cache and states", size=kv, low=kv, high=kv, source=PartSource.FORMULA),
    )
    needed = sum(part.size for part in parts)
    room = 21 * GIB
    return DeviceFit(
        name=f"RTX 3090 #{number}",
        total=24 * GIB,
        taken=2 * GIB,
        room=room,
        parts=parts,
        needed=needed,
        free_after=room - needed,
    ).model_copy(update=changes)


def report(request: FitRequest, **changes: Any) -> FitReport:
    """Return the report of a request: 65,536 bytes per token, and 4.4 GiB usable for them."""
    context, kv = request.context or 32_768, request.kv or "auto"
    each = _BYTES.get(kv, 65_536)
    size = context * request.streams * each
    one = device(0, size)
    fits = one.needed <= one.room
    largest = (one.room - one.needed + size) // each // request.streams // 256 * 256
    verdict = Verdict.FITS if fits else Verdict.DOES_NOT_FIT
    return FitReport(
        model=request.model or request.preset or "model",
        engine=EngineKind.VLLM,
        kv=kv,
        context=context,
        streams=request.streams,
        tensor_parallel=1,
        verdict=verdict,
        why="" if fits else f"{(one.needed - one.room) / GIB:.1f} GiB are missing.",
        devices=(one,),
        kv_bytes_per_token=each,
        largest_context=min(largest, 262_144),
        most_streams=max(1, largest * request.streams // context),
        kv_choices=tuple(
            KvChoice(
                kv=name,
                bytes_per_token=size,
                verdict=Verdict.FITS,
                largest_context=min(262_144, largest * each // size),
            )
            for name, size in _BYTES.items()
            if name in ("auto", "fp8", "turboquant_k8v4")
        ),
        curve=(CurvePoint(context=262_144, needed=33 * GIB, room=21 * GIB, verdict=Verdict.DOES_NOT_FIT),),
        changes=()
        if fits
        else (
            Change(
                id="kv:fp8",
                text="Keep the KV cache as fp8.",
                saves=size // 2,
                fits=True,
                option="--kv fp8",
                asks={"kv": "fp8"},
            ),
            Change(
                id="context",
                text=f"Take a context of {largest:,} tokens.",
                saves=size - largest * each,
                fits=True,
                option=f"--context {largest}",
                asks={"context": largest},
            ),
            Change(
                id="free_memory",
                text="End the other programs that hold memory there.",
                saves=2 * GIB,
                fits=False,
            ),
        ),
        advice=(
            Advice(
                id="cliff.gdn_long_prompt",
                severity=Severity.WARNING,
                message="One prompt above 50,000 tokens can run out of memory on this card.",
                fix="Use two GPUs.",
                evidence="reported from single 24 GB cards",
            ),
        ),
        roofline=Roofline(
            decode=48.5, decode_all_streams=48.5, prefill=None, bytes_per_step=17 * GIB, why="bandwidth"
        ),
    ).model_copy(update=changes)
