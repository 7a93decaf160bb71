"""Read a record: what ended the engine, what held memory, how the curves ended, what would have saved it.

Pure: a record in, sentences out.
"""

from collections.abc import Iterator, Sequence

from engine_host.core.diagnosis.kill import judge_kill, met_limit, raise_limit, verdict_of
from engine_host.core.diagnosis.slow_causes import causes_of
from engine_host.core.diagnosis.work import Measured, busy_of
from engine_host.protocol.base import Severity
from engine_host.protocol.bench.autopsy import (
    Autopsy,
    AutopsyReading,
    CurveEnd,
    Ending,
    HeldMemory,
    Knob,
    RecordedSeries,
)
from engine_host.protocol.bench.diagnosis import SlowReason
from engine_host.protocol.errors import Fix, FixPart, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Verdict

_BEFORE = 60.0
_MOST_KNOBS = 8
_NOT_BY_ITSELF = (
    "Counted on the machine without it, this start fits: look for a limit that the count does not know"
    " (a container's, a service's MemoryMax, ulimit), or for what else took memory at that time."
)
_OF_OTHERS = "free_memory"
"""The change of a start that ends other programs."""
LET_GO = 3.0
"""Seconds before the record of the end in which a process may have let go of its memory already."""
_OF_MEMORY = {SlowReason.KV_FULL, SlowReason.PREEMPTED, SlowReason.RAM_SHORT}
_MEMORY_RAN_OUT = {Ending.MAIN_MEMORY, Ending.GPU_MEMORY}


def read(record: Autopsy) -> AutopsyReading:
    """Return what a record says."""
    ending, sentence = end_of(record)
    return AutopsyReading(
        ending=ending,
        sentence=sentence,
        held=tuple(_held(record)) if ending is not Ending.REFUSED or _lacked_room(record) else (),
        curve=tuple(_curve(record)),
        knobs=tuple(_knobs(record, ending))[:_MOST_KNOBS],
        not_measured=tuple(_not_measured(record)),
    )


def end_of(record: Autopsy) -> tuple[Ending, str]:
    """Return the kind of the end, and a sentence: the engine's own problem, as it is told everywhere."""
    problem = record.engine.problem
    if (verdict := verdict_of(problem)) is not None:
        return verdict
    when = "while it served" if record.engine.ready_at is not None else "while it started"
    if record.signal == "SIGKILL" and (problem is None or "line" not in problem.evidence):
        return judge_kill(when, record.oom_kills, _last_ram_share(record))
    if problem is None:
        how = f" by {record.signal}" if record.signal is not None else ""
        return Ending.EXITED, f"It was ended{how} {when}."
    if not record.engine.stages and record.engine.ready_at is None:
        # It never had a process.
        return Ending.REFUSED, _sentence(problem.message)
    told = f"{_sentence(problem.message)} That was {when}."
    if problem.reason is Reason.OUT_OF_MEMORY:
        where = Ending.GPU_MEMORY if _computes_on_gpus(record) else Ending.MAIN_MEMORY
        said = str(problem.evidence.get("line", ""))
        return where, f"{told} It said: {said}" if said and said not in told else told
    return (Ending.CRASHED if record.signal is not None else Ending.EXITED), told


def _lacked_room(record: Autopsy) -> bool:
    problem = record.engine.problem
    return problem is not None and problem.reason is Reason.OUT_OF_MEMORY


def _sentence(text: str) -> str:
    """Return a text that the next sentence can follow: the words of another program may have no full stop."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _held(record: Autopsy) -> Iterator[HeldMemory]:
    engine = record.engine
    for what, size in sorted(engine.buffers.items(), key=lambda one: -one[1]):
        yield HeldMemory(what=what, bytes=size, source="the engine's log")
    if record.fit is not None and (engine.ready_at is None or not engine.buffers):
        # What it asked for and did not get stands in no list of buffers.
        for device in record.fit.devices:
            for part in sorted(device.parts, key=lambda one: -one.size):
                if part.size > 0:
                    yield HeldMemory(
                        what=tr("wanted: {device} {part}", device=device.name, part=part.name),
                        bytes=part.size,
                        source="computed by sndr fit",
                    )
    readings = engine.readings
    if readings is not None and readings.memory is not None:
        files = readings.memory_of_files
        yield HeldMemory(what="RAM of its processes", bytes=readings.memory, source="operating system")
        if files:
            yield HeldMemory(what="of it pages of files", bytes=files, source="operating system")
    if (used := _before_the_end(record, "ram.used")) is not None:
        yield HeldMemory(what="RAM of everything", bytes=round(used), source="operating system")
    for gpu in record.gpus:
        if (vram := _before_the_end(record, f"gpu.{gpu.index}.memory.used")) is not None:
            yield HeldMemory(
                what=tr("VRAM of GPU {index} before the end", index=gpu.index),
                bytes=round(vram),
                source="NVIDIA driver",
            )
        for holder in gpu.holders:
            if holder.memory:
                yield HeldMemory(
                    what=tr(
                        "GPU {index}: {holder} (pid {pid}), not this engine",
                        index=gpu.index,
                        holder=holder.name or tr("a process"),
                        pid=holder.pid,
                    ),
                    bytes=holder.memory,
                    source="NVIDIA driver",
                )


def _curve(record: Autopsy) -> Iterator[CurveEnd]:
    own = f"engine.{record.engine.id}."
    wanted = ["ram.used", *(f"gpu.{gpu.index}.memory.used" for gpu in record.gpus)]
    wanted += [own + name for name in ("memory", "kv.share", "requests.running", "requests.waiting")]
    by_name = {series.name: series for series in record.series}
    for name in wanted:
        if (series := by_name.get(name)) is not None and (end := _end_of_curve(series, record.step)):
            yield end


def _end_of_curve(series: RecordedSeries, step: float) -> CurveEnd | None:
    known = [(place, value) for place, value in enumerate(series.values) if value is not None]
    if not known:
        return None
    last_at, last = known[-1]
    if series.unit == "bytes":
        last = _full(series, step)
    back = _BEFORE / step
    before_at, before = next((place, value) for place, value in known if last_at - place <= back)
    return CurveEnd(
        name=series.name,
        title=series.title,
        unit=series.unit,
        before=before,
        before_seconds=(last_at - before_at) * step,
        highest=max(value for _, value in known),
        last=last,
    )


def _knobs(record: Autopsy, ending: Ending) -> Iterator[Knob]:
    engine, problem = record.engine, record.engine.problem
    if ending is Ending.KILLED:
        return
    no_room = ending is Ending.REFUSED and _lacked_room(record)
    limited = False
    if ending in _MEMORY_RAN_OUT or no_room:
        limited = met_limit(record.oom_kills, _last_ram_share(record))
        if limited:
            yield Knob(text=raise_limit())
        if record.fit is not None:
            for change in record.fit.changes:
                if limited and change.id == _OF_OTHERS:
                    # What the limit holds back counts as taken, and nobody else holds it.
                    continue
                command = f"sndr fit {engine.plan.model} {change.option}" if change.option else None
                yield Knob(
                    text=change.text,
                    saves=change.saves,
                    enough=change.fits,
                    fix=Fix(text=change.text, command=command),
                )
            for advice in record.fit.advice:
                if advice.severity is not Severity.INFO:
                    yield Knob(text=tr("{message} {fix}", message=advice.message, fix=advice.fix))
        measured = Measured({one.name: one.values for one in _on_one_grid(record)}, record.step, record.gpus)
        for cause in causes_of(busy_of(engine, measured), measured):
            if cause.reason in _OF_MEMORY and cause.fix is not None:
                yield Knob(
                    text=tr("{sentence} {text}", sentence=cause.sentence, text=cause.fix.text), fix=cause.fix
                )
        if record.fit is not None and record.fit.verdict is Verdict.FITS and not (no_room or limited):
            yield Knob(text=_NOT_BY_ITSELF)
    patches = engine.plan.patches.chosen if engine.plan.patches is not None else ()
    if patches and ending is Ending.CRASHED:
        text = tr(
            "It ran with {count} patches: try the start without them, or find the one.", count=len(patches)
        )
        yield Knob(
            text=text, fix=Fix(text=text, command=f"sndr patches bisect {engine.plan.model} --check answers")
        )
    if problem is not None and (fix := problem.fix) is not None:
        if limited and fix.begins_with is FixPart.RAISE_LIMIT:
            # That stands first already.
            fix = fix.model_copy(update={"text": fix.rest, "begins_with": None, "rest": ""})
        if fix.text:
            yield Knob(text=fix.text, fix=fix)


def _on_one_grid(record: Autopsy) -> Sequence[RecordedSeries]:
    first = min((one.first for one in record.series), default=0.0)
    return [
        one.model_copy(update={"values": (None,) * round((one.first - first) / record.step) + one.values})
        for one in record.series
    ]


def _not_measured(record: Autopsy) -> Iterator[str]:
    if not record.engine.plan.argv and not record.engine.stages:
        # It came to no plan: there was nothing to measure.
        return
    own = f"engine.{record.engine.id}."
    if record.engine.stages and not any(series.name.startswith(own) for series in record.series):
        yield "series of the engine: it ended before its first readings"
    if not any(series.name.startswith("ram.") for series in record.series):
        yield "RAM"
    if not record.gpus and record.no_gpu is None:
        yield "GPUs: none is listed"
    if record.signal == "SIGKILL" and record.oom_kills is None:
        yield "the kernel's out-of-memory killer: this system does not count it"
    if record.fit is None:
        yield "what the start needed: its model could not be looked at"


def _computes_on_gpus(record: Autopsy) -> bool:
    return bool(record.engine.plan.gpus) or any(
        series.name.endswith(".memory.used") and series.name.startswith("gpu.") for series in record.series
    )


def _before_the_end(record: Autopsy, name: str) -> float | None:
    """Return what was held of a memory when the process still lived; None where it was not measured."""
    for series in record.series:
        if series.name == name and any(value is not None for value in series.values):
            return _full(series, record.step)
    return None


def _full(series: RecordedSeries, step: float) -> float:
    """Return the highest of the last seconds: an end is told after the process gave its memory back."""
    known = [(place, value) for place, value in enumerate(series.values) if value is not None]
    last_at = known[-1][0]
    return max(value for place, value in known if (last_at - place) * step <= LET_GO)


def _last_ram_share(record: Autopsy) -> float | None:
    used, total = _before_the_end(record, "ram.used"), _before_the_end(record, "ram.total")
    return used / total if used is not None and total else None
