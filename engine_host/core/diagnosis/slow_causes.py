"""Judge from measured series why an engine was slow. Pure: series and engines in, causes out."""

import re
from collections.abc import Iterator

from engine_host.core.diagnosis.changed_start import with_setting
from engine_host.core.diagnosis.slow_attention import attention_causes
from engine_host.core.diagnosis.slow_ceilings import ceiling_causes
from engine_host.core.diagnosis.work import Busy, Measured, Values
from engine_host.protocol.bench.diagnosis import SlowCause, SlowReason
from engine_host.protocol.errors import Fix
from engine_host.protocol.host import THROTTLE_WORDS, Gpu
from engine_host.protocol.language import tr

_KV_FULL = 0.95
_RAM_SHORT = 0.95
_CPU_BUSY = 0.95
_WORKING = 0.5
"""The share of time from which a GPU counts as at work."""
_LEAST = 0.1
"""The share of the busy time from which a cause is worth a word."""
_STATE_OF = re.compile(r"(?:draft )?(\S+) (?:KV|recurrent state)")
"""A buffer of llama.cpp that belongs to layers, and its device."""
_FEW_DRAFTS = 1.3
"""Tokens a step below which drafts cost about what they bring."""


def causes_of(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    """Return what slowed an engine down while it worked; nothing for one that did not work."""
    if busy.steps:
        for judge in (
            _queued,
            _kv_full,
            _preempted,
            _prefix_missed,
            _drafts_refused,
            _eager,
            _on_processor,
            attention_causes,
            ceiling_causes,
            _of_gpus,
            _of_machine,
        ):
            yield from judge(busy, measured)


def _of(busy: Busy, measured: Measured, name: str) -> Values:
    return measured.of(busy.engine, name)


def _queued(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    waiting = _of(busy, measured, "requests.waiting")
    share = busy.share(waiting, lambda value: value > 0)
    if share is not None and share >= _LEAST:
        streams = busy.engine.plan.streams
        most = max(value for value in waiting if value is not None)
        yield SlowCause(
            reason=SlowReason.QUEUED,
            engine=busy.engine.name,
            sentence=tr(
                "Requests waited for a free stream in {share:.0%} of the time, up to {most:.0f} at "
                "once; {streams} run at a time.",
                share=share,
                most=most,
                streams=streams,
            ),
            share=share,
            evidence={"waiting_at_most": most, "streams": float(streams)},
            fix=Fix(
                text="Start it with more streams, if the memory allows: fit says.",
                command=f"sndr fit {busy.engine.plan.model} --streams {2 * streams}",
            ),
        )


def _kv_full(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    filled = _of(busy, measured, "kv.share")
    share = busy.share(filled, lambda value: value >= _KV_FULL)
    if share is not None and share >= _LEAST:
        yield SlowCause(
            reason=SlowReason.KV_FULL,
            engine=busy.engine.name,
            sentence=tr(
                "The KV cache was full ({kv_full:.0%} and more) in {share:.0%} of the time: requests "
                "wait for blocks, and cached prefixes are dropped.",
                kv_full=_KV_FULL,
                share=share,
            ),
            share=share,
            fix=Fix(
                text="Give it a smaller KV type, less context or fewer streams.",
                command=f"sndr fit {busy.engine.plan.model}",
            ),
        )


def _preempted(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    preempted = _of(busy, measured, "preemptions")
    total = sum(value for value in preempted if value)
    if total:
        share = busy.share(preempted, lambda value: value > 0)
        fewer = max(1, busy.engine.plan.streams // 2)
        yield SlowCause(
            reason=SlowReason.PREEMPTED,
            engine=busy.engine.name,
            sentence=tr(
                "{total:.0f} requests were preempted: they lost their KV blocks, and were recomputed "
                "from the start.",
                total=total,
            ),
            share=share,
            evidence={"preemptions": total},
            fix=Fix(
                text="Run fewer streams, or give the KV cache more memory.",
                command=f"sndr fit {busy.engine.plan.model} --streams {fewer}",
            ),
        )


def _prefix_missed(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    lost = measured.lost.get(busy.engine.id, 0.0)
    seconds = len(busy.steps) * measured.step
    hits = busy.mean(_of(busy, measured, "prefix_hits"))
    if lost / seconds >= _LEAST:
        found = "" if hits is None else tr(" {hits:.0%} of the prompts was found in the cache.", hits=hits)
        yield SlowCause(
            reason=SlowReason.PREFIX_MISSED,
            engine=busy.engine.name,
            sentence=tr(
                "Conversations waited {lost:.0f} s for the prefill of prompt parts that had been "
                "computed before.{found}",
                lost=lost,
                found=found,
            ),
            share=min(1.0, lost / seconds),
            evidence={"lost_seconds": round(lost, 1), **({} if hits is None else {"hits": round(hits, 3)})},
            fix=Fix(
                text="See at which message each prompt parts from the one before.",
                command="sndr requests prefix",
            ),
        )


def _drafts_refused(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    length = busy.mean(_of(busy, measured, "acceptance_length"))
    if busy.engine.plan.speculation != "off" and length is not None and length < _FEW_DRAFTS:
        yield SlowCause(
            reason=SlowReason.DRAFTS_REFUSED,
            engine=busy.engine.name,
            sentence=tr(
                "Of the draft tokens few are accepted: {length:.2f} tokens a step, where 1 is none.",
                length=length,
            ),
            share=1.0 - (length - 1.0),
            evidence={"acceptance_length": round(length, 3)},
            fix=Fix(
                text="Draft fewer tokens, or start it without speculation.", settings={"speculation": "off"}
            ),
        )


def _eager(busy: Busy, _measured: Measured) -> Iterator[SlowCause]:
    settings = {setting.name: setting.value for setting in busy.engine.plan.settings}
    if settings.get("eager") is True:
        yield SlowCause(
            reason=SlowReason.EAGER,
            engine=busy.engine.name,
            sentence="It was started without compiled graphs (eager): each step pays for every kernel's"
            " launch.",
            fix=Fix(
                text="Start it without this setting.",
                command=with_setting(busy.engine.plan.command, "eager", "false"),
                settings={"eager": False},
            ),
        )


def _on_processor(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    """Judge by where the cache lies, as llama.cpp keeps each layer with its own; words stay in RAM."""
    sizes = {True: 0, False: 0}
    for name, size in busy.engine.buffers.items():
        if (found := _STATE_OF.fullmatch(name)) is not None:
            sizes[found[1].startswith("CPU")] += size
    whole = sum(sizes.values())
    # Where no GPU is known, there is none that could compute.
    if not whole or not (measured.gpus or sizes[False]) or sizes[True] < _LEAST * whole:
        return
    share = sizes[True] / whole
    nothing = not sizes[False]
    yield SlowCause(
        reason=SlowReason.ON_PROCESSOR,
        engine=busy.engine.name,
        sentence=tr("Nothing of it lies on a GPU: all of it is computed on the processor.")
        if nothing
        else tr(
            "{share:.0%} of its cache lies in main memory: the layers that it belongs to are computed on the"
            " processor.",
            share=share,
        ),
        share=share,
        evidence={"main_memory": float(sizes[True]), "gpus": float(sizes[False])},
        fix=Fix(
            text="Choose a server that was built for this GPU; its driver has to know the server's CUDA.",
            command="sndr engine list",
        )
        if nothing
        else Fix(
            text="Take a smaller context, fewer streams or smaller weights, so that all layers fit.",
            command=f"sndr fit {busy.engine.plan.model}",
        ),
    )


def _of_gpus(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    for gpu in measured.gpus:
        name = f"gpu.{gpu.index}."
        at_work = measured.values(name + "utilization")
        steps = frozenset(
            step for step in busy.steps if step < len(at_work) and (at_work[step] or 0.0) >= _WORKING
        )
        working = Busy(busy.engine, steps)
        slowed = working.mean(measured.values(name + "throttled"))
        if slowed is not None and slowed >= _LEAST:
            # It may be over by now: what it was then is not kept.
            why = ", ".join(THROTTLE_WORDS[reason] for reason in gpu.throttled_by or ()) or None
            yield SlowCause(
                reason=SlowReason.THROTTLED,
                sentence=tr(
                    "GPU {index} ({gpu}) ran below its clocks in {slowed:.0%} of the time that it "
                    "worked[ (now: {why})].",
                    index=gpu.index,
                    gpu=gpu.name,
                    slowed=slowed,
                    why=why,
                ),
                share=slowed,
                evidence={"gpu": gpu.uuid, **_measured_of(gpu)},
                fix=Fix(text="Look at its temperature and its power limit.", command="sndr top"),
            )
        if (
            gpu.pcie is not None
            and gpu.pcie.most_width is not None
            and gpu.pcie.width < gpu.pcie.most_width
            and steps
        ):
            yield SlowCause(
                reason=SlowReason.PCIE_NARROW,
                sentence=tr(
                    "GPU {index} has {width} of {most_width} PCIe lanes: loading and talking to "
                    "other GPUs is slower.",
                    index=gpu.index,
                    width=gpu.pcie.width,
                    most_width=gpu.pcie.most_width,
                ),
                evidence={
                    "gpu": gpu.uuid,
                    "lanes": float(gpu.pcie.width),
                    "most": float(gpu.pcie.most_width),
                },
                fix=Fix(text="Another slot of the mainboard, or its settings, may give it all of them."),
            )


def _measured_of(gpu: Gpu) -> dict[str, float | str]:
    known = {
        "temperature": gpu.temperature,
        "power": gpu.power,
        "power_limit": gpu.power_limit,
        "clock": gpu.clock,
    }
    return {name: float(value) for name, value in known.items() if value is not None}


def _of_machine(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    cpu = busy.share(measured.values("cpu.share"), lambda value: value >= _CPU_BUSY)
    if cpu is not None and cpu >= _LEAST and not measured.gpus:
        yield SlowCause(
            reason=SlowReason.CPU_BUSY,
            sentence=tr(
                "All CPU cores were busy in {cpu:.0%} of the time that the engine worked: it "
                "computes there, and whatever else runs takes from it.",
                cpu=cpu,
            ),
            share=cpu,
            fix=Fix(
                text="End what else runs; where nothing does, this processor is the limit.",
                command="sndr top",
            ),
        )
    used, total = measured.values("ram.used"), measured.values("ram.total")
    shares = [
        None if one is None or whole is None or not whole else one / whole
        for one, whole in zip(used, total, strict=False)
    ]
    short = busy.share(shares, lambda value: value >= _RAM_SHORT)
    if short is not None and short >= _LEAST:
        yield SlowCause(
            reason=SlowReason.RAM_SHORT,
            sentence=tr(
                "RAM was full ({ram_short:.0%} and more) in {short:.0%} of the time: weights that "
                "are mapped are read from the disk again.",
                ram_short=_RAM_SHORT,
                short=short,
            ),
            share=short,
            fix=Fix(text="End what else holds memory, or start a smaller quantisation.", command="sndr top"),
        )
