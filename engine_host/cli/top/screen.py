"""GPUs, engines and requests of one moment as a screen of text."""

import errno
import time
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine_host.cli.output import size
from engine_host.cli.requests.lines import speed, written
from engine_host.cli.status import gpu_text
from engine_host.cli.top.reading import Reading
from engine_host.client.ends import age_words, ended, what_it_did
from engine_host.core.visible import visible
from engine_host.protocol.engines import Engine, Readings, Request
from engine_host.protocol.host import RECORDED, SLOWED_BY, THROTTLE_WORDS, Gpu, Playback, ThrottleReason
from engine_host.protocol.language import formed

_MOST_REQUESTS = 12
_MOST_ENDED = 3
_LONGEST = 40
_NAME, _GAP = 12, 2
# Each heading with its rank: the higher, the sooner it goes where there is no room.
_GPU_COLUMNS = (
    *(
        ("GPU", 0),
        ("busy", 1),
        ("VRAM", 2),
        ("memory busy", 8),
        ("temperature", 5),
        ("power", 4),
        ("clock", 7),
    ),
    *(("slowed by", 3), ("PCIe", 9), ("held by", 6)),
)
_ENGINE_COLUMNS = (
    *(
        ("engine", 0),
        ("state", 1),
        ("streams", 2),
        ("waiting", 5),
        ("prefill/s", 6),
        ("decode/s", 3),
        ("KV", 4),
    ),
    *(("prefix hits", 8), ("drafts", 9), ("RAM", 7)),
)
_REQUEST_COLUMNS = (
    *(("request", 9), ("client", 4), ("model", 0), ("engine", 8), ("state", 1), ("for", 2), ("prompt", 5)),
    *(("cached", 7), ("written", 6), ("tokens/s", 3)),
)
_UNKNOWN = "-"
"""Stands for what was not measured."""


class Terminal(Console):
    """A terminal or a pipe; one whose reader is gone ends the command as any other does."""

    def on_broken_pipe(self) -> None:
        """Pass on that nobody reads, which rich would make an exit code 1 of."""
        raise BrokenPipeError(errno.EPIPE, "nobody reads")


def screen(reading: Reading, width: int, below: str = "") -> RenderableType:
    """Return all of it, in `width` columns: what matters least is left out first; `below` is a last line."""
    parts: list[RenderableType] = [_machine(reading), Text()]
    if reading.host.gpus:
        parts += [_gpus(reading.host.gpus, reading.engines, width), Text()]
    if (played := reading.host.playback) is not None:
        parts += [*_played(played, width), Text()]
    if reading.engines or not reading.ended:
        parts += [_engines(reading.engines, width), Text()]
    for engine in reading.ended[:_MOST_ENDED]:
        parts += [*_ended(engine, reading.at), Text()]
    parts.append(_requests(reading, width))
    if below:
        parts += [Text(), Text(below, "dim")]
    return Group(*parts)


def _machine(reading: Reading) -> RenderableType:
    host, machine = reading.host, reading.machine
    busy = (
        host.hostname,
        f"CPU {_share(machine.get('cpu.share'))} of {host.cpu_threads} threads",
        f"RAM {size(host.ram_used)} of {size(host.ram_total)}",
        *(() if host.gpus else (f"GPU: {gpu_text(host)}",)),
    )
    moved = (
        f"disk {_rate(machine.get('disk.read'))} read, {_rate(machine.get('disk.written'))} written",
        f"network {_rate(machine.get('network.received'))} in, {_rate(machine.get('network.sent'))} out",
    )
    return Group(*(_text("  ·  ".join(words), longest=200) for words in (busy, moved)))


def _played(played: Playback, width: int) -> list[RenderableType]:
    """Return the GPUs of a trace that is played, below the words that say so."""
    if played.problem is not None:
        return [_text(played.problem.message, "yellow", longest=200)]
    day = (
        "" if played.recorded_at is None else time.strftime(", %Y-%m-%d", time.localtime(played.recorded_at))
    )
    return [
        _text(f"GPUs of {played.file}{day}: {RECORDED}", "yellow", longest=200),
        _gpus(played.gpus, (), width),
    ]


def _gpus(gpus: Sequence[Gpu], engines: Sequence[Engine], width: int) -> Table:
    rows: list[Sequence[Text]] = []
    for gpu in gpus:
        slowed = None if gpu.throttled_by is None else [why for why in gpu.throttled_by if why in SLOWED_BY]
        rows.append(
            (
                _text(f"{gpu.index} {gpu.name}"),
                _text(_share(gpu.utilization)),
                _text(f"{size(gpu.memory_used)} of {size(gpu.memory_total)}"),
                _text(_share(gpu.memory_utilization)),
                _text(_of(gpu.temperature, gpu.slowdown_temperature, " °C")),
                _text(_of(gpu.power, gpu.power_limit, " W")),
                _text(_of(gpu.clock, gpu.most_clock, " MHz")),
                _text(_words(slowed), "yellow" if slowed else ""),
                _text(_pcie(gpu)),
                _text(_held_by(gpu, engines)),
            )
        )
    return _table(_GPU_COLUMNS, rows, width)


def _held_by(gpu: Gpu, engines: Sequence[Engine]) -> str:
    own = {engine.pid: engine.name for engine in engines}
    holders = [
        f"{own.get(holder.pid, holder.name)} {'' if holder.memory is None else size(holder.memory)}".rstrip()
        for holder in gpu.holders
    ]
    return ", ".join(holders) or "nobody"


def _engines(engines: Sequence[Engine], width: int) -> RenderableType:
    if not engines:
        return Text("No engine runs. `sndr run --demo` starts one.", "dim")
    rows: list[Sequence[Text]] = []
    for engine in engines:
        now = engine.readings or Readings(at=0.0)
        kv = now.kv_usage
        if now.kv_tokens is not None and now.kv_capacity:
            kv = now.kv_tokens / now.kv_capacity
        hits = None
        if now.prefix_hits_total is not None and now.prefix_queries_total:
            hits = now.prefix_hits_total / now.prefix_queries_total
        rows.append(
            (
                _text(engine.name),
                _text(engine.state.value),
                _text(_of(now.slots_busy, now.slots_total or engine.plan.streams)),
                _text(_number(now.requests_waiting)),
                _text(_number(now.prefill_rate)),
                _text(_number(now.decode_rate, 1)),
                _text(_share(kv)),
                _text(_share(hits)),
                _text(_number(now.acceptance_length, 2)),
                _text(_UNKNOWN if now.memory is None else size(now.memory)),
            )
        )
    return _table(_ENGINE_COLUMNS, rows, width)


def _ended(engine: Engine, now: float) -> list[RenderableType]:
    """Return what ended an engine, and what leads on: who watches sees it go, and asks why."""
    said = f"{engine.name} {what_it_did(engine)} {age_words(ended(engine), now)}"
    why = "" if engine.problem is None else f": {engine.problem.message}"
    more = [] if engine.was_refused else [f"sndr autopsy {engine.id}"]
    return [
        _text(said + why, "yellow", longest=600),
        _text("  ·  ".join([*more, engine.plan.command]), "dim", longest=600),
    ]


def _requests(reading: Reading, width: int) -> RenderableType:
    requests = sorted(reading.requests, key=lambda request: request.created_at)
    if not requests:
        return Text("No request is open.", "dim")
    names = {engine.id: engine.name for engine in reading.engines}
    rows: list[Sequence[Text]] = []
    for request in requests[:_MOST_REQUESTS]:
        rows.append(
            (
                _text(request.id),
                _text(request.client_name or request.client or _UNKNOWN),
                _text(request.model),
                _text(request.provider or names.get(request.engine, request.engine) or _UNKNOWN),
                _text(_state(request)),
                _text(f"{max(0.0, reading.at - request.created_at):.0f} s"),
                _text(_number(request.prompt_tokens)),
                _text(_number(request.cached_tokens)),
                _text(written(request)),
                _text(speed(request)),
            )
        )
    table = _table(_REQUEST_COLUMNS, rows, width)
    more = len(requests) - _MOST_REQUESTS
    return Group(table, Text(f"and {more} more", "dim")) if more > 0 else table


def _state(request: Request) -> str:
    if request.place is not None:
        return f"{request.state.value}, {request.place}."
    if request.prefill_tokens is not None and request.prefill_of:
        return f"{request.state.value} {formed(request.prefill_tokens / request.prefill_of, '.0%')}"
    return request.state.value


def _pcie(gpu: Gpu) -> str:
    if gpu.pcie is None:
        return _UNKNOWN
    now = f"{gpu.pcie.generation} x{gpu.pcie.width}"
    most = f"{gpu.pcie.most_generation} x{gpu.pcie.most_width}"
    return now if now == most or gpu.pcie.most_width is None else f"{now} of {most}"


def _table(columns: Sequence[tuple[str, int]], rows: Sequence[Sequence[Text]], width: int) -> Table:
    """Return the columns that have room, the least important left out first; the first one may be cut."""
    widths = [max(len(heading), *(row[i].cell_len for row in rows)) for i, (heading, _) in enumerate(columns)]
    shown = list(range(len(columns)))
    while (
        len(shown) > 2 and sum(min(widths[i], _NAME if i == 0 else widths[i]) + _GAP for i in shown) > width
    ):
        shown.remove(max(shown, key=lambda i: columns[i][1]))
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for i in shown:
        table.add_column(
            columns[i][0], overflow="ellipsis", no_wrap=True, min_width=0 if i == 0 else widths[i]
        )
    for row in rows:
        table.add_row(*(row[i] for i in shown))
    return table


def _text(words: str, style: str = "", longest: int = _LONGEST) -> Text:
    """Return a cell; names come from files and other programs, and steer no terminal."""
    line = visible(words.replace("\n", " ").replace("\t", " "))
    return Text(line if len(line) <= longest else f"{line[: longest - 1]}…", style)


def _words(reasons: Sequence[ThrottleReason] | None) -> str:
    if reasons is None:
        return _UNKNOWN
    return ", ".join(THROTTLE_WORDS[reason] for reason in reasons) or "nothing"


def _share(value: float | None) -> str:
    return _UNKNOWN if value is None else formed(value, ".0%")


def _rate(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{size(round(value))}/s"


def _number(value: float | None, places: int = 0) -> str:
    return _UNKNOWN if value is None else f"{value:,.{places}f}"


def _of(value: float | None, most: float | None, unit: str = "") -> str:
    if value is None:
        return _UNKNOWN
    return f"{value:,.0f}{unit}" if most is None else f"{value:,.0f} of {most:,.0f}{unit}"
