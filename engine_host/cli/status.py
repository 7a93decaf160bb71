"""`sndr status|events|logs`: what is there, what runs, what happened."""

import time
from collections import Counter, deque
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import click

from engine_host.cli.on_demand.commands import lines
from engine_host.cli.output import Exit, Output, clock, command, echo, size, visible_record
from engine_host.cli.start.host import connected
from engine_host.cli.text.chosen_host import chosen_host, typed
from engine_host.cli.text.events import summary
from engine_host.cli.text.log_files import lines_of_files, log_files
from engine_host.cli.text.tables import pairs, paragraph, table
from engine_host.client.ends import age_words, ended, ends_of, left_ended, what_it_did
from engine_host.client.exchange import event_of
from engine_host.client.sync import ControlClient
from engine_host.core.diagnosis.listing import page_of
from engine_host.core.diagnosis.shelf import AutopsyShelf
from engine_host.core.did_you_mean import meant_or, near_names
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.core.paths import Folders
from engine_host.core.sizes import duration
from engine_host.protocol.base import Severity, Wire
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import EventBase, LogLineEvent, ResetEvent
from engine_host.protocol.host import ABSENCE_WORDS, Endpoint, HostInfo, Reach, updated
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.logs import LogLine, LogPage, LogQuery
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Nothing, Operation

_GONE = {EngineState.UNLOADED, EngineState.FAILED}
_Answer = TypeVar("_Answer", bound=Wire)
_FREQUENT = {"engine.readings", "telemetry.sample", "log.line"}
_KINDS = sorted({str(one.model_fields["kind"].default) for one in EventBase.__subclasses__()} - {"heartbeat"})
_SHOWN = 20
_MOST_LINES = 10_000
"""Of each source so many are kept (`core/log_buffer.py`)."""
_MOST_FAILED = 3
_NO_ENGINES = {name: name for name in ("host", "build")}
_SHOWN_REFUSED = 600.0
# Well within what the host keeps, so that the place is still there when it is read.
_LOOK_BACK = 10_000


def _known(client: ControlClient, operation: Operation[Nothing, _Answer]) -> _Answer | None:
    """Return what a host says; None from one whose version knows no such operation."""
    try:
        return client.call(operation)
    except HostError as error:
        if error.reason is not Reason.UNSUPPORTED:
            raise
        return None


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also every start that ended.")
@command("sndr status", "sndr --host gpu status")
def status(out: Output, everything: bool) -> Exit | None:
    """Say what runs: the host, its endpoint, its engines, and those that ended by themselves."""
    try:
        client = connected()
    except HostError as error:
        if error.lost and not chosen_host() and (last := _last_end()):
            out.note(last)
        raise
    with client:
        host = client.call(ops.HOST)
        engines = client.call(ops.ENGINES).engines
        loadable = _known(client, endpoint_ops.ON_DEMAND)
        asked = _known(client, endpoint_ops.ENDPOINT_MODELS)
    on_demand = loadable.models if loadable is not None else ()
    with_host = asked.ended if asked is not None else ()
    if out.as_json:
        out.record(
            {
                "host": host.model_dump(mode="json"),
                "engines": [e.model_dump(mode="json") for e in engines],
                "on_demand": [one.model_dump(mode="json") for one in on_demand],
                "ended_with_host": [one.model_dump(mode="json") for one in with_host],
            }
        )
        return None
    if host.replaced:
        out.note(updated())
    rows = [
        ("host", f"{host.program}, pid {host.pid}, up {duration(time.time() - host.started_at)}"),
        (
            "",
            f"ends with {host.owner or 'its window'}"
            if host.ends_with_window
            else typed("stays until `sndr quit`"),
        ),
        *_clock_rows(client.clock.ahead),
        ("machine", f"{host.cpu_name}, {host.cpu_threads} threads"),
        ("RAM", f"{size(host.ram_used)} of {size(host.ram_total)}"),
        ("GPU", gpu_text(host)),
        ("endpoint", endpoint_text(host.endpoint)),
    ]
    echo("\n".join(pairs(rows)))
    echo()
    shown = engines if everything else _of_now(engines)
    echo(typed("\n".join(_engines(shown)) if shown else "No engine runs. `sndr run --demo` starts one."))
    for one in with_host:
        # Neither an end of its own nor an order: it is on no other list.
        out.note(f"{one.name} ended with the engine host before this one. Again: `{one.command}`")
    if on_demand:
        echo()
        echo(typed("\n".join(lines(on_demand))))
    if earlier := len(engines) - len(shown):
        echo(typed(f"{earlier} earlier {'start' if earlier == 1 else 'starts'}: sndr status --all"))
    return None


def _of_now(engines: tuple[Engine, ...]) -> tuple[Engine, ...]:
    """Return the live engines, and those that failed last and were not started again; `--all` has all."""
    alive = (engine for engine in engines if engine.state not in _GONE)
    return (*alive, *left_ended(engines, time.time(), _SHOWN_REFUSED)[:_MOST_FAILED])


def _last_end() -> str:
    """Return the newest end on record, where no host runs that could tell it; empty without any."""
    ends = ends_of((), page_of(AutopsyShelf(Folders.resolve().autopsies)).autopsies)
    if not ends:
        return ""
    last = ends[0]
    said = f"The last engine that ended by itself, {last.age(time.time())}: {last.name}: {last.sentence}"
    return f"{said}\n  $ sndr autopsy {last.record}"


def gpu_text(host: HostInfo) -> str:
    """Name the GPUs with their memory; of none say why, in a few words."""
    if host.gpus:
        return ", ".join(
            f"{gpu.name} ({size(gpu.memory_used)} of {size(gpu.memory_total)})" for gpu in host.gpus
        )
    return f"none ({ABSENCE_WORDS[host.gpu_absence]})" if host.gpu_absence else "none"


def no_gpu_lines(finding: Finding | None) -> list[str]:
    """Return why no GPU is listed and what to do; nothing where some are, or nobody knows."""
    if finding is None:
        return []
    lines = [tr("GPUs: {why}", why=finding.message)]
    if finding.fix is not None:
        lines.append(f"  {finding.fix.text}")
        lines += [f"  $ {finding.fix.command}"] if finding.fix.command else []
    return lines


def endpoint_text(endpoint: Endpoint) -> str:
    """Describe the endpoint: its address, who can reach it, and if it needs a key."""
    if endpoint.url is None:
        return f"not served (wanted: port {endpoint.wanted_port})"
    reach = "this machine only" if endpoint.reach is Reach.THIS_MACHINE else "everyone on the network"
    moved = "" if endpoint.port == endpoint.wanted_port else f"; port {endpoint.wanted_port} was taken"
    here = "" if endpoint.local_url in {None, endpoint.url} else f"; from here {endpoint.local_url}"
    return f"{endpoint.url} ({reach}, {'key required' if endpoint.key_required else 'no key'}{moved}{here})"


def _engines(engines: tuple[Engine, ...]) -> list[str]:
    rows = []
    for engine in engines:
        readings = engine.readings
        busy = kv = memory = "-"
        if readings is not None and engine.state not in _GONE:
            if readings.slots_busy is not None:
                # vLLM has no slots; it takes as many requests at once as the start says.
                busy = f"{readings.slots_busy:,} of {readings.slots_total or engine.plan.streams:,}"
            if readings.kv_tokens is not None and readings.kv_capacity is not None:
                kv = f"{readings.kv_tokens:,} of {readings.kv_capacity:,}"
            if readings.memory is not None:
                memory = size(readings.memory)
        word = "refused" if engine.was_refused else engine.state.value
        state = word + (", kept" if engine.keep and engine.state not in _GONE else "")
        rows.append((engine.id, engine.name, engine.server.value, state, busy, kv, memory))
    lines = table(("engine", "model", "server", "state", "streams", "KV tokens", "RAM"), rows)
    for engine in engines:
        if engine.problem is not None:
            age = age_words(ended(engine), time.time())
            lines += paragraph(f"{engine.id}: {engine.problem.message} ({what_it_did(engine)}, {age})")
            lines += _refused(engine, engine.problem) if engine.was_refused else _ended(engine)
    return lines


def _ended(engine: Engine) -> list[str]:
    """Return what leads on from an engine that failed: its end, its log, the same start."""
    return [
        f"  its end:     $ sndr autopsy {engine.id}",
        f"  its log:     $ sndr logs {engine.id}",
        f"  start again: $ {engine.plan.command}",
    ]


def _refused(engine: Engine, problem: Problem) -> list[str]:
    """Return what leads on from a start that was refused: nothing ran, so it has no log."""
    rows = [("why:", problem.cause)] if problem.cause else []
    if problem.fix is not None:
        rows.append(("what to do:", problem.fix.text))
        if problem.fix.command and problem.fix.command != engine.plan.command:
            rows.append(("", f"$ {problem.fix.command}"))
    return pairs([*rows, ("asked for:", f"$ {engine.plan.command}")], "  ")


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Follow new events.")
@click.option("--after", type=click.IntRange(0), help="Only events with a higher number.")
@click.option("--all", "every", is_flag=True, help="Measurements and log lines too.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be repeated.")
@command("sndr events", "sndr events --follow --kind engine.state")
def events(out: Output, follow: bool, after: int | None, every: bool, kinds: tuple[str, ...]) -> Exit | None:
    """Print what happened: the last 20 events, or all after a number.

    Measurements (telemetry.sample) and log lines (log.line) are left out: there is one of them a second.
    """
    for kind in kinds:
        if kind not in _KINDS:
            near = near_names(kind, _KINDS, 3)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"There is no kind of event {kind!r}.{meant} Kinds: {', '.join(_KINDS)}.")
    with connected() as client:
        assert client.version is not None
        latest = client.version.seq
        first = max(0, latest - _LOOK_BACK) if after is None else after
        if not follow and first >= latest:
            return None
        # What was there before is kept back until it is known which are the last.
        earlier: deque[str] = deque(maxlen=_SHOWN if after is None else None)
        caught_up = first >= latest
        for line in client.event_lines(first):
            event = _read_event(line)
            if event is None:
                continue
            kind = event["kind"]
            selected = kind != "heartbeat" and (kind in kinds if kinds else every or kind not in _FREQUENT)
            if selected:
                earlier.append(
                    visible_record(event) if out.as_json else _event_line(event, client.clock.ahead)
                )
            reached = event.get("latest", 0) if kind == "reset" else event.get("seq", 0)
            caught_up = caught_up or reached >= latest
            if caught_up:
                while earlier:
                    echo(earlier.popleft())
                if not follow:
                    return None
    return None


def _read_event(line: str) -> dict[str, Any] | None:
    """Return an event as it came; None for what is none, or is not what its kind says."""
    try:
        event = json_text.parse_object(line)
    except ValueError:
        return None
    kind, at = event.get("kind"), event.get("at")
    if kind in _KINDS and kind not in _FREQUENT and event_of(line) is None:
        return None
    whole = isinstance(kind, str) and isinstance(event.get("seq", 0), int) and isinstance(at, int | float)
    return event if whole else None


def _clock_rows(ahead: float) -> list[tuple[str, str]]:
    """Return a row where the clock of the host is another one than this machine's."""
    if not ahead:
        return []
    way = "ahead of" if ahead > 0 else "behind"
    return [("clock", f"{duration(abs(ahead))} {way} this machine's; times are shown by this machine's")]


def _event_line(event: dict[str, Any], ahead: float) -> str:
    return f"{clock(event['at'] - ahead)} {event['seq'] or '':>6}  {event['kind']:<16} {summary(event)}"


@click.command()
@click.argument("source", required=False)
@click.option("-f", "--follow", is_flag=True, help="Follow new lines.")
@click.option("--level", type=click.Choice(["info", "warning", "error"]), default="info", show_default=True)
@click.option("-n", "--lines", "count", type=click.IntRange(0, 10_000), default=100, show_default=True)
@command("sndr logs", "sndr logs qwen3-8b --follow --level warning")
def logs(out: Output, source: str | None, follow: bool, level: str, count: int) -> Exit | None:
    """Print log lines of SOURCE (host, build, an engine's id or a model's name), or of all.

    Of engines of earlier hosts, and when no host runs, the lines are read from the files in the data folder.
    """
    try:
        client = connected()
    except HostError as error:
        if chosen_host():
            raise
        files = lines_of_files(Folders.resolve(), source, level, count)
        gone = error.reason in {Reason.HOST_UNREACHABLE, Reason.HOST_GONE}
        if follow or not gone or not files.sources:
            raise
        if source is not None and source not in files.sources:
            raise _no_source(source, files.sources) from error
        out.note("No engine host runs; these are the last one's log files.")
        _show_files(out, files)
        return None
    with client:
        assert client.version is not None
        after = client.version.seq
        page = _tail(client, source, level, count)
        if source is not None and not page.lines and (named := _newest_of(client, source)) is not None:
            source = named
            page = _tail(client, source, level, count)
        if source is not None and not page.lines:
            # The files of another machine are not reached; its host keeps the newest lines.
            here = not client.host
            files = lines_of_files(client.folders, source, level, count) if here else page
            _check_source(client, source, {*page.sources, *files.sources})
            if here and source not in page.sources and not follow and source in files.sources:
                _show_files(out, files)
                return None
        if out.as_json and not follow:
            out.record(page)
            return None
        names = dict(_NO_ENGINES)
        for line in page.lines:
            _print(out, line, client, names)
        if not page.lines and not follow:
            kept = () if client.host else log_files(client.folders)
            sources = ", ".join(dict.fromkeys((*page.sources, *kept)))
            out.note(f"No lines. Sources: {sources or 'none yet'}.")
        if not follow:
            return None
        read = {line.source: line.number for line in page.lines}
        levels = ["info", "warning", "error"]
        # A page of a higher level does not tell which lines are between its own.
        whole = level == levels[0]
        seen = dict(read) if whole else {}
        for event in client.events(after):
            if anew := isinstance(event, ResetEvent):
                # The events since then are not kept any more; most of their lines still are.
                lines = _tail(client, source, level, _MOST_LINES).lines
            elif isinstance(event, LogLineEvent):
                lines = event.lines
            else:
                continue
            for line in lines:
                if source not in {None, line.source} or line.number <= read.get(line.source, 0):
                    continue
                if anew and not whole:
                    seen.pop(line.source, None)
                else:
                    _tell_gap(out, line.source, line.number - seen.get(line.source, line.number - 1) - 1)
                    seen[line.source] = line.number
                if levels.index(line.severity) >= levels.index(level):
                    _print(out, line, client, names)
            if anew:
                read |= {line.source: line.number for line in lines}
    return None


def _tell_gap(out: Output, source: str, lines: int) -> None:
    """Say that lines were left out, which the host does for whoever does not keep up."""
    if lines > 0:
        out.note(
            tr(
                "Left out of {source}: {lines}, as lines came faster than they could be sent.",
                source=source,
                lines=lines,
            )
        )


def _show_files(out: Output, page: LogPage) -> None:
    """Lines that files hold; their times are in them, where they have any."""
    if out.as_json:
        out.record(page)
        return
    for line in page.lines:
        echo(f"{line.source:<14} {line.text}")
    if not page.lines:
        out.note(f"No lines. Sources: {', '.join(page.sources)}.")


def _newest_of(client: ControlClient, model: str) -> str | None:
    """The id of the newest engine that runs or ran under a model's name."""
    engines = [one for one in client.call(ops.ENGINES).engines if one.name == model]
    newest = max(engines, key=lambda engine: engine.created_at, default=None)
    return newest.id if newest is not None else None


def _check_source(client: ControlClient, source: str, sources: Collection[str]) -> None:
    """Raise HostError(not_found) for a source that there is not; one may be silent so far."""
    known = {"host", "build", *sources}
    engines = client.call(ops.ENGINES).engines
    known |= {engine.id for engine in engines}
    if source not in known:
        raise _no_source(source, sorted(known), [engine.name for engine in engines])


def _no_source(source: str, known: Sequence[str], names: Sequence[str] = ()) -> HostError:
    return HostError(
        Reason.NOT_FOUND,
        tr("There is no log source {source}.", source=source),
        cause=tr("Sources: {known}.", known=", ".join(known)),
        fix=meant_or(Fix(text="See which there are.", command="sndr logs"), source, [*known, *names]),
        evidence={"sources": list(known)},
    )


def _tail(client: ControlClient, source: str | None, level: str, count: int) -> LogPage:
    return client.call(ops.LOGS, LogQuery(source=source, severity=Severity(level), limit=count))


def _names(client: ControlClient) -> dict[str, str]:
    """Return for each engine what a person calls it: its name, with its id where others have that name."""
    engines = client.call(ops.ENGINES).engines
    shared = {name for name, times in Counter(one.name for one in engines).items() if times > 1}
    return {one.id: f"{one.name} ({one.id})" if one.name in shared else one.name for one in engines}


def _print(out: Output, line: LogLine, client: ControlClient, names: dict[str, str]) -> None:
    """Print a line; `names` are those known so far by source, and what is not among them is asked for."""
    if out.as_json:
        out.record(line)
        return
    mark = "" if line.severity == "info" else f"{line.severity.value}: "
    if line.source not in names:
        names |= {line.source: line.source, **_names(client)}
    echo(f"{clock(line.at)} {names.get(line.source, line.source):<14} {mark}{line.text}")
