"""The record of an engine that died in words, for the terminal and the window."""

import time
from collections.abc import Iterator

from engine_host.core.sizes import duration, size_text
from engine_host.protocol.bench.autopsy import (
    Autopsy,
    CurveEnd,
    Ending,
    Knob,
    OpenedAutopsy,
    RecordedRequest,
)
from engine_host.protocol.language import formed, measured, tr, translated, written

_REQUESTS, _LINES = 8, 12


def record_lines(opened: OpenedAutopsy) -> list[str]:
    """Return one record: the end, memory, curves, requests, knobs, the end of the log."""
    record, reading = opened.record, opened.reading
    engine = record.engine
    lines = [_end_line(record, reading.ending), reading.sentence, f"  {engine.plan.model_path}"]
    if engine.plan.argv:
        asked = tr(
            "context {context}, streams {streams}",
            context=written(f"{engine.plan.context:,}"),
            streams=engine.plan.streams,
        )
        lines.append(f"  {engine.engine} {engine.server_version}, {asked}")
    if engine.plan.patches is not None and engine.plan.patches.chosen:
        lines.append("  " + tr("Patches: {patches}", patches=", ".join(engine.plan.patches.chosen)))
    if reading.held:
        sizes = [measured(size_text(part.bytes)) for part in reading.held]
        width = max(map(len, sizes))
        lines += ["", tr("What held memory")]
        lines += [
            f"  {size:>{width}}  {part.what} ({part.source})"
            for size, part in zip(sizes, reading.held, strict=True)
        ]
    if reading.ending is not Ending.REFUSED:
        # Without a process there was nothing that could grow, and nobody asked it anything.
        lines += ["", tr("The curves before the end"), *map(_curve_line, reading.curve)]
        if not reading.curve:
            lines.append("  " + tr("Nothing was measured."))
        lines += ["", *_request_lines(record)]
    lines += ["", tr("What would have saved it"), *_knob_lines(reading.knobs)]
    if engine.last_lines:
        lines += ["", tr("The end of its log"), *(f"  {line}" for line in engine.last_lines[-_LINES:])]
    if record.no_gpu is not None:
        lines.append(tr("GPUs: {why}", why=record.no_gpu.message))
    return lines + [tr("Not measured: {what}.", what=translated(what)) for what in reading.not_measured]


def moment(at: float) -> str:
    """Return a time with its day, as people write it down."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _end_line(record: Autopsy, ending: Ending) -> str:
    engine, at = record.engine, moment(record.at)
    if ending is Ending.REFUSED:
        return tr("{name} ({id}) was refused its start {at}.", name=engine.name, id=engine.id, at=at)
    if engine.ready_at is None:
        lived = measured(duration(record.at - engine.created_at))
        return tr(
            "{name} ({id}) died {at}, after {lived} of starting.",
            name=engine.name,
            id=engine.id,
            at=at,
            lived=lived,
        )
    lived = measured(duration(record.at - engine.ready_at))
    return tr(
        "{name} ({id}) died {at}, after {lived} of serving.",
        name=engine.name,
        id=engine.id,
        at=at,
        lived=lived,
    )


def _curve_line(curve: CurveEnd) -> str:
    before, highest, last = (_amount(one, curve.unit) for one in (curve.before, curve.highest, curve.last))
    if not curve.before_seconds:
        return f"  {curve.title}: {last}"
    span = measured(duration(curve.before_seconds))
    if curve.before == curve.last == curve.highest:
        return f"  {curve.title}: " + tr("{last}, for {span}", last=last, span=span)
    return f"  {curve.title}: " + tr(
        "{before} → {last} in the last {span}, at most {highest}",
        before=before,
        last=last,
        span=span,
        highest=highest,
    )


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return measured(size_text(value))
    # What is counted stands in the title: "Requests running: 1".
    return formed(value, ".0%") if unit == "share" else written(f"{value:,.12g}")


def _request_lines(record: Autopsy) -> Iterator[str]:
    if not record.requests:
        yield tr("No request was known.")
        return
    cut = sum(one.cut_off for one in record.requests)
    yield tr("The last requests; its end cut off {cut}", cut=cut)
    yield from (_request_line(one, record.at) for one in record.requests[:_REQUESTS])


def _request_line(request: RecordedRequest, ended: float) -> str:
    words = [
        f"  {'✗' if request.cut_off else ' '} {request.id} {request.route}",
        tr("begun {age} before", age=measured(duration(ended - request.created_at))),
        tr("cut off") if request.cut_off else request.state.value,
    ]
    if request.prompt_tokens is not None:
        words.append(tr("{count} tokens asked", count=written(f"{request.prompt_tokens:,}")))
    elif request.prefill_of:
        read, of = (written(f"{count:,}") for count in (request.prefill_tokens or 0, request.prefill_of))
        words.append(tr("{read} of {of} tokens of its prompt read", read=read, of=of))
    if request.generated_tokens is not None:
        words.append(tr("{count} written", count=written(f"{request.generated_tokens:,}")))
    if request.client_name:
        words.append(request.client_name)
    return ", ".join(words)


def _knob_lines(knobs: tuple[Knob, ...]) -> list[str]:
    if not knobs:
        return ["  " + tr("Nothing that is known: no measurement says that a setting ended it.")]
    lines = []
    for number, knob in enumerate(knobs, start=1):
        lines.append(f"  {number}. {knob.text}{_saves(knob)}")
        if knob.fix is not None and knob.fix.command:
            lines.append(f"     $ {knob.fix.command}")
    return lines


def _saves(knob: Knob) -> str:
    if not knob.saves:
        return ""
    size = measured(size_text(knob.saves))
    return f" ({tr('saves {size}, and fits', size=size) if knob.enough else tr('saves {size}', size=size)})"
