"""The records of engines that died, as lines for a terminal."""

import time
from collections.abc import Iterator

from engine_host.core.sizes import duration, size_text
from engine_host.protocol.bench.autopsy import (
    Autopsy,
    AutopsyEntry,
    AutopsyPage,
    CurveEnd,
    Ending,
    Knob,
    OpenedAutopsy,
    RecordedRequest,
)
from engine_host.protocol.language import formed, tr, translated

_REQUESTS, _LINES = 8, 12


def list_lines(page: AutopsyPage) -> list[str]:
    """Return the list, the newest first."""
    died = [_entry_line(one) for one in page.autopsies if one.ending is not Ending.REFUSED]
    refused = [_entry_line(one) for one in page.autopsies if one.ending is Ending.REFUSED]
    lines = died or ["No engine died. When one does, what was measured before its end is kept here."]
    if refused:
        # Nothing ran that could have died.
        lines += ["", "Starts that were refused:", *refused]
    lines += [f"{one.id}  cannot be read: {one.why}" for one in page.unreadable]
    if not (page.autopsies or page.unreadable):
        return lines
    return [*lines, "", f"$ sndr autopsy {(page.autopsies or page.unreadable)[0].id}"]


def _entry_line(one: AutopsyEntry) -> str:
    return f"{one.id}  {_moment(one.at)}  {one.name} ({one.engine}): {one.sentence}"


def record_lines(opened: OpenedAutopsy) -> list[str]:
    """Return one record: the end, memory, curves, requests, knobs, the end of the log."""
    record, reading = opened.record, opened.reading
    engine = record.engine
    lived = duration(record.at - (engine.ready_at if engine.ready_at is not None else engine.created_at))
    since = "serving" if engine.ready_at is not None else "starting"
    how = f"died {_moment(record.at)}, after {lived} of {since}"
    if reading.ending is Ending.REFUSED:
        how = f"was refused its start {_moment(record.at)}"
    lines = [f"{engine.name} ({engine.id}) {how}.", reading.sentence, f"  {engine.plan.model_path}"]
    if engine.plan.argv:
        lines.append(
            f"  {engine.engine} {engine.server_version}, context {engine.plan.context:,},"
            f" streams {engine.plan.streams}"
        )
    if engine.plan.patches is not None and engine.plan.patches.chosen:
        lines.append(f"  Patches: {', '.join(engine.plan.patches.chosen)}")
    if reading.held:
        width = max(len(size_text(part.bytes)) for part in reading.held)
        lines += ["", "What held memory"]
        lines += [f"  {size_text(part.bytes):>{width}}  {part.what} ({part.source})" for part in reading.held]
    if reading.ending is not Ending.REFUSED:
        # Without a process there was nothing that could grow, and nobody asked it anything.
        lines += ["", "The curves before the end", *map(_curve_line, reading.curve)]
        if not reading.curve:
            lines.append("  Nothing was measured.")
        lines += ["", *_request_lines(record)]
    lines += ["", "What would have saved it", *_knob_lines(reading.knobs)]
    if engine.last_lines:
        lines += ["", "The end of its log", *(f"  {line}" for line in engine.last_lines[-_LINES:])]
    lines += [tr("Not measured: {what}.", what=translated(what)) for what in reading.not_measured]
    return [
        *lines,
        f"$ sndr autopsy {record.id} --json  # every value of the last {duration(record.seconds)}",
    ]


def _curve_line(curve: CurveEnd) -> str:
    before, highest, last = (_amount(one, curve.unit) for one in (curve.before, curve.highest, curve.last))
    if not curve.before_seconds:
        return f"  {curve.title}: {last}"
    if curve.before == curve.last == curve.highest:
        return f"  {curve.title}: {last}, for {duration(curve.before_seconds)}"
    return (
        f"  {curve.title}: {before} → {last} in the last {duration(curve.before_seconds)}, at most {highest}"
    )


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return size_text(value)
    return formed(value, ".0%") if unit == "share" else f"{value:.12g} {unit}"


def _request_lines(record: Autopsy) -> Iterator[str]:
    if not record.requests:
        yield "No request was known."
        return
    cut = sum(one.cut_off for one in record.requests)
    yield f"The last requests; its end cut off {cut}"
    yield from (_request_line(one, record.at) for one in record.requests[:_REQUESTS])


def _request_line(request: RecordedRequest, ended: float) -> str:
    words = [
        f"  {'✗' if request.cut_off else ' '} {request.id} {request.route}",
        f"begun {duration(ended - request.created_at)} before",
        "cut off" if request.cut_off else request.state.value,
    ]
    if request.prompt_tokens is not None:
        words.append(f"{request.prompt_tokens:,} tokens asked")
    elif request.prefill_of:
        words.append(f"{request.prefill_tokens or 0:,} of {request.prefill_of:,} tokens of its prompt read")
    if request.generated_tokens is not None:
        words.append(f"{request.generated_tokens:,} written")
    if request.client_name:
        words.append(request.client_name)
    return ", ".join(words)


def _knob_lines(knobs: tuple[Knob, ...]) -> list[str]:
    if not knobs:
        return ["  Nothing that is known: no measurement says that a setting ended it."]
    lines = []
    for number, knob in enumerate(knobs, start=1):
        saves = f" (saves {size_text(knob.saves)}{', and fits' if knob.enough else ''})" if knob.saves else ""
        lines.append(f"  {number}. {knob.text}{saves}")
        if knob.fix is not None and knob.fix.command:
            lines.append(f"     $ {knob.fix.command}")
    return lines


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
