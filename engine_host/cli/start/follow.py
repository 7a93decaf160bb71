"""A start from the command line: its plan, its stages, where it answers, until it ends; for every command."""

import shlex
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from engine_host.cli.output import CODES, NOTE, Exit, Output, echo, problem_lines
from engine_host.cli.start.consent import with_consent
from engine_host.cli.start.host import HostHold, find_or_start
from engine_host.cli.start.options import with_option
from engine_host.cli.start.running import GONE
from engine_host.cli.start.suggestions import with_near_names
from engine_host.cli.status import endpoint_text
from engine_host.cli.text.chosen_host import chosen_host, typed
from engine_host.cli.text.died import died_lines
from engine_host.cli.text.plan import exit_of, plan_lines
from engine_host.client.chat_stream import Answer, ask
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import ended_host, slow_end
from engine_host.core.sizes import duration
from engine_host.protocol.base import Severity
from engine_host.protocol.endpoint.example import EXAMPLE_QUESTION
from engine_host.protocol.engines import DRAIN_SECONDS, Engine, EngineState, StopEngine
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import EngineStageEvent, EngineStateEvent, HostStateEvent
from engine_host.protocol.host import HostInfo, HostStay
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest, StartRequest
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops

_UP = {EngineState.READY, EngineState.BUSY}
_NO_ANSWERS = {"embeddings", "reranking"}
_STOP = 30.0


@dataclass(frozen=True)
class StartOptions:
    """Options of a start: with `about` the plan is printed before it, below the text that `about` returns.

    `ask_demo` puts a question to the model when it is up. `accept` is a consent to what a preset from
    somebody else asks for.
    """

    dry_run: bool = False
    detach: bool = False
    about: Callable[[ControlClient], str] | None = None
    ask_demo: bool = False
    accept: str | None = None


def start(
    out: Output, options: StartOptions, request_of: Callable[[ControlClient], LaunchRequest]
) -> Exit | None:
    """Plan a start, carry it out and follow it until Ctrl+C or its end. Raises HostError.

    Starts a host when none runs, and then ends it again; one that ran before is left as it was.
    """
    detach = options.detach and not options.dry_run
    own: list[str] = []
    with signals(), find_or_start(daemon=detach) as hold, _others_left(out, hold, own), ExitStack() as ends:
        try:
            asked = request_of(hold.client)
            plan = _planned(hold.client, asked, kept=not options.dry_run)
            may_end = asked.instead_of is not None
            shown = plan_lines(plan if may_end else _with_hint(plan))
            if options.about is not None and not out.as_json:
                shown = [options.about(hold.client), *shown]
            if options.dry_run:
                out.result(plan, shown)
                return exit_of(plan)
            if not may_end and (other := _of_this_name(hold.client, plan)) is not None:
                if not (detach and _is_what_is_asked(other, plan)):
                    raise _same_name(hold, plan, other, detach=detach)
                with _detached_host(out, hold):
                    out.note(tr("{name} runs already, as it is asked for.", name=other.name))
                    _announce(out, hold.client.call(ops.HOST), other, None, detached=True)
                return None
            if options.about is None:
                # The first error is what the start is refused with: it is said there, once.
                stopping = next((one for one in plan.findings if one.severity is Severity.ERROR), None)
                noted = [finding for finding in plan.findings if finding is not stopping]
                shown = [f"{finding.severity.value}: {finding.message}" for finding in noted]
            elif out.as_json:
                out.record(plan)
            for line in shown:
                out.note(line)
            if detach:
                ends.enter_context(_detached_host(out, hold))
            request = StartRequest(plan=plan.id, replace=may_end)
            started = with_consent(
                out,
                options.accept,
                plan.command,
                lambda consent: hold.client.call(ops.START, request.model_copy(update={"consent": consent})),
                shown=options.about is not None,
            )
            own.append(started.id)
            started = until_ready(hold.client, started, out)
            host = hold.client.call(ops.HOST)
            after = f" after {duration(started.ready_after)}" if started.ready_after is not None else ""
            out.note(f"{started.name} is ready{after}.")
            if started.context < plan.context:
                out.note(f"It gives a stream {started.context:,} tokens, not the {plan.context:,} asked for.")
            answer = _ask_demo(out, hold.client, host, started) if options.ask_demo else None
        except HostError as error:
            # What ran before goes on as it did.
            if not (detach and (own or hold.detached)):
                raise
            raise _with_running_engines(hold, error) from error
        _announce(out, host, started, answer, detached=detach)
        return None if detach else _serve(out, hold, started)


def _planned(client: ControlClient, request: LaunchRequest, *, kept: bool) -> LaunchPlan:
    """The plan of a start. Raises HostError that names what is near an unknown name, or a value's option.

    A refusal is `kept` among the failed starts, where `sndr doctor` finds it.
    """
    try:
        return client.call(ops.PLAN, request)
    except HostError as error:
        if kept and not error.lost:
            with suppress(HostError):
                client.call(ops.REFUSED, request)
        named = with_option(error, request)
        raise with_near_names(client, named, request.model or request.preset or "") from error


def _with_hint(plan: LaunchPlan) -> LaunchPlan:
    """The plan as it is shown where nothing may be ended: the engine of its name would be in the way."""
    fix = Fix(
        text="Give this one another name with --name, or put it in that one's place.", command=plan.command
    )
    found = [
        one
        if one.id != "replaces"
        else one.model_copy(update={"message": f"{one.evidence['name']} runs already.", "fix": fix})
        for one in plan.findings
    ]
    return plan.model_copy(update={"findings": tuple(found)})


def _of_this_name(client: ControlClient, plan: LaunchPlan) -> Engine | None:
    """The engine that runs and that this start would end; None without one."""
    ended = {ref.id for ref in plan.instead_of}
    return next((one for one in _running(client) if one.id in ended), None) if ended else None


def _is_what_is_asked(other: Engine, plan: LaunchPlan) -> bool:
    """Return True for an engine that serves just what this start would serve in its place."""
    there = other.plan
    same = (there.model_path, there.installation, there.gpus) == (
        plan.model_path,
        plan.installation,
        plan.gpus,
    )
    return other.state in _UP and same and not plan.changes


def _same_name(hold: HostHold, plan: LaunchPlan, other: Engine, *, detach: bool) -> HostError:
    """Return the error for a start that would end another engine, which nobody allowed."""
    command = f"{plan.command}{' --detach' if detach else ''}"
    url = hold.client.call(ops.HOST).endpoint.url
    if hold.started_here:
        # A kept engine of an earlier host: nobody can reach it when this command has ended.
        where, hint = (
            tr("It was kept from before"),
            tr("Serve it with `sndr serve` and ask it with `sndr chat`"),
        )
    else:
        where, hint = tr("It answers at {url}", url=url), tr("Ask it with `sndr chat`")
    return HostError(
        Reason.CONFLICT,
        tr("{other} runs already ({state}).", other=other.name, state=other.state.value),
        cause=tr("{where}; starting {plan} would end it.", where=where, plan=plan.name),
        fix=Fix(
            text=tr(
                "{hint}, give this one another name with --name, or put it in that one's place.", hint=hint
            ),
            command=command,
        ),
        evidence={"engine": other.id, "name": other.name, "endpoint": url},
    )


def _running(client: ControlClient) -> list[Engine]:
    """The engines that serve or are about to; one that is being stopped is no more in the way."""
    ending = {*GONE, EngineState.DRAINING, EngineState.STOPPING}
    return [one for one in client.call(ops.ENGINES).engines if one.state not in ending]


@contextmanager
def _detached_host(out: Output, hold: HostHold) -> Iterator[None]:
    """A host that would end with somebody's window stays; given back when the start fails."""
    host = hold.client.call(ops.HOST)
    if not host.ends_with_window:
        yield
        return
    hold.client.call(ops.STAY_HOST, HostStay())
    out.note(f"The host, which would end with {host.owner or 'its window'}, stays from now on.")
    try:
        yield
    except (HostError, KeyboardInterrupt):
        # The interrupted connection may have half an answer in it.
        with suppress(HostError), hold.client.again() as fresh:
            if not _running(fresh):
                fresh.call(ops.STAY_HOST, HostStay(stays=False))
        raise


def _with_running_engines(hold: HostHold, error: HostError) -> HostError:
    """The same failure, saying what goes on: after --detach nobody is there to end it.

    A host that was started for this alone, and now has no engine, is ended again.
    """
    try:
        with hold.client.again() as fresh:
            names = ", ".join(one.name for one in _running(fresh))
            if error.reason is Reason.CONFLICT:
                return error  # It says what runs.
            if hold.detached and not names:
                fresh.call(ops.QUIT_HOST)
    except HostError:
        return error
    if names:
        left = f"{names} still runs: `sndr stop --all` ends what runs, `sndr quit` the host too."
    elif hold.detached:
        left = "No engine runs; the host that was started for it has ended again."
    else:
        left = "No engine runs; the host still does: `sndr quit` ends it."
    evidence = {**error.problem.evidence, NOTE: typed(left)}
    return HostError.from_problem(error.problem.model_copy(update={"evidence": evidence}))


def stop_engine(client: ControlClient, engine: Engine, *, now: bool, wait: float = DRAIN_SECONDS) -> Engine:
    """Stop an engine and return when it is gone; `wait`: seconds for its answers. Raises HostError."""
    engine = client.call(ops.STOP, StopEngine(now=now, wait=wait), id=engine.id)
    patience = _STOP - DRAIN_SECONDS + wait
    end = time.monotonic() + patience
    while engine.state not in GONE:
        if time.monotonic() > end:
            raise HostError(
                Reason.ENGINE_NOT_READY,
                tr("{engine} is still stopping after {stop:.0f} s.", engine=engine.name, stop=patience),
                cause=slow_end(),
                fix="End it at once with `sndr stop --now`.",
            )
        time.sleep(0.05)
        engine = client.call(ops.ENGINE, id=engine.id)
    return engine


@contextmanager
def signals() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl+C, and Ctrl+C as such even where a shell has it ignored."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before: dict[int, Any] = {
        getattr(signal, name): signal.signal(getattr(signal, name), interrupt) for name in names
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def until_ready(client: ControlClient, engine: Engine, out: Output) -> Engine:
    """Wait for the engine and say its stages. Raises HostError with the engine's problem; Ctrl+C stops it."""
    assert client.version is not None
    printed: set[str] = set()
    try:
        for event in client.events(client.version.seq):
            if isinstance(event, EngineStageEvent) and event.engine == engine.id:
                stage = event.stage
                if stage.ended_at is not None and stage.name not in printed:
                    printed.add(stage.name)
                    took = duration(stage.ended_at - stage.started_at)
                    out.note(f"  {stage.name}  {took}{'  ' + stage.detail if stage.detail else ''}")
                if out.as_json:
                    out.record(event)
                continue
            if isinstance(event, EngineStateEvent) and event.engine.id == engine.id:
                engine = event.engine
            elif event.kind in {"reset", "missed"}:
                engine = client.call(ops.ENGINE, id=engine.id)
            if engine.state in _UP:
                return engine
            if engine.state in GONE:
                raise _failed(engine)
    except KeyboardInterrupt:
        out.note(f"\nStopping {engine.name} …")
        with client.again() as fresh:
            stop_engine(fresh, engine, now=True)
        raise
    raise HostError(
        Reason.HOST_GONE,
        "The engine host has ended.",
        cause=ended_host(),
        fix="Start a model with `sndr run`, or the host alone with `sndr serve`.",
    )


def _failed(engine: Engine) -> HostError:
    problem = engine.problem or Problem(
        reason=Reason.CANCELLED, message=tr("{engine} was stopped before it was ready.", engine=engine.name)
    )
    if engine.last_lines and "last_lines" not in problem.evidence:
        tail = list(engine.last_lines[-20:])
        problem = problem.model_copy(update={"evidence": {**problem.evidence, "last_lines": tail}})
    return HostError.from_problem(problem)


def _ask_demo(out: Output, client: ControlClient, host: HostInfo, engine: Engine) -> Answer | None:
    """One question through the public endpoint, as an editor would ask it, with a key where one is needed."""
    url = host.endpoint.local_url or host.endpoint.url
    if url is None:
        return None
    if any(setting.name in _NO_ANSWERS and setting.value for setting in engine.plan.settings):
        out.note("It was started for vectors or ranks, and writes no answer to a question.")
        return None
    if url.startswith("https:") or client.host:
        # Its certificate is for the name by which others know the machine; another machine's address may be
        # somebody else's here.
        out.note(f"\nAsk it with: sndr chat {EXAMPLE_QUESTION!r}")
        return None
    out.note(f"\n> {EXAMPLE_QUESTION}")
    show = None if out.as_json else lambda text: echo(text, nl=False)
    key = client.call(endpoint_ops.OWN_KEY).key if host.endpoint.key_required else None
    answer = ask(url, engine.name, EXAMPLE_QUESTION, show, key=key)
    if not out.as_json:
        echo()
    return answer


def _announce(out: Output, host: HostInfo, engine: Engine, answer: Answer | None, *, detached: bool) -> None:
    if out.as_json:
        out.record(
            {
                "engine": engine.model_dump(mode="json"),
                "endpoint": host.endpoint.model_dump(mode="json"),
                "answer": answer.as_json() if answer else None,
            }
        )
        return
    # With one engine its name is not needed.
    name = f" {shlex.quote(engine.name)}" if engine.plan.beside else ""
    if answer is not None:
        echo(f"\n{answer.speed()}")
    elsewhere = f", on {chosen_host()}" if chosen_host() else ""
    echo(f"Endpoint: {endpoint_text(host.endpoint)}{elsewhere}")
    echo(f"Model:    {engine.name}")
    if answer is not None and host.endpoint.url is not None:
        key = '-H "Authorization: Bearer KEY" ' if host.endpoint.key_required else ""
        chat = f"sndr chat --model{name}" if name else "sndr chat"
        echo(typed(f"Try:      {chat}   or   curl {key}{host.endpoint.url}/models"))
    if detached:
        echo(typed(f"Stop:     sndr stop{name}   (sndr quit ends the host too)"))
        if there := chosen_host():
            # Of this machine's endpoint: the routes there know nothing of this one.
            led = shlex.join(["sndr", "routes", "set", engine.name, f"{there}/{engine.name}"])
            echo(f"Use here: {led}")


def _serve(out: Output, hold: HostHold, engine: Engine) -> Exit | None:
    """Stay until Ctrl+C or the engine's end, then leave things as they were.

    A host that was started here goes on for engines that others have started on it.
    """
    client = hold.client
    lingers = False
    out.note("Serving. Ctrl+C ends it." + (" The model stays." if engine.keep else ""))
    try:
        assert client.version is not None
        for event in client.events(client.version.seq):
            if isinstance(event, EngineStateEvent) and event.engine.id == engine.id:
                engine = event.engine
                if engine.state is EngineState.FAILED:
                    if out.as_json:
                        raise _failed(engine)
                    out.note("\n".join(died_lines(engine)))
                    return CODES[_failed(engine).reason]
                if engine.state is EngineState.UNLOADED:
                    others = _running(client)
                    said = f"{engine.name} {_how_it_ended(engine, others)}"
                    if not others or not hold.started_here or not client.call(ops.HOST).ends_with_window:
                        out.note(f"{said}.")
                        return None
                    names = ", ".join(one.name for one in others)
                    out.note(f"{said}; the host keeps running for {names}.")
                    lingers = True
            elif lingers and isinstance(event, EngineStateEvent):
                if event.engine.state in GONE and not _running(client):
                    out.note("No engine is left.")
                    return None
            elif isinstance(event, HostStateEvent) and event.state == "closing":
                out.note("The host is ending.")
                return None
    except KeyboardInterrupt:
        if not engine.keep and not lingers:
            out.note(f"\nStopping {engine.name} …")
            with client.again() as fresh:
                _stop_quickly(out, fresh, engine)
    return None


def _how_it_ended(engine: Engine, others: Sequence[Engine]) -> str:
    """Say that an engine was stopped, or by which one it was replaced."""
    for other in others:
        if any(ref.id == engine.id for ref in other.plan.instead_of):
            return f"was replaced by {other.name}"
    return "was stopped"


@contextmanager
def _others_left(out: Output, hold: HostHold, own: list[str]) -> Iterator[None]:
    """Let a host that was started here go on for engines that others started on it; `own` are ours."""
    try:
        yield
    finally:
        if hold.started_here:
            # The interrupted connection may have half an answer in it.
            with suppress(HostError), hold.client.again() as fresh:
                others = [one.name for one in _running(fresh) if one.id not in own and not one.keep]
                if others:
                    fresh.call(ops.STAY_HOST, HostStay())
                    runs = "still runs" if len(others) == 1 else "still run"
                    out.note(f"{', '.join(others)} {runs}, and the host stays: `sndr quit` ends both.")


def _stop_quickly(out: Output, client: ControlClient, engine: Engine) -> None:
    """Drain and stop; a second Ctrl+C does not wait for answers that are being written."""
    try:
        try:
            stop_engine(client, engine, now=False)
        except KeyboardInterrupt:
            with client.again() as fresh:
                stop_engine(fresh, engine, now=True)
    except HostError as error:
        if error.reason not in {Reason.HOST_UNREACHABLE, Reason.HOST_GONE, Reason.NOT_FOUND}:
            out.note("\n".join(problem_lines(error.problem)))
