"""A host at one glance: its state, GPUs, models, speed, last event, and how old its facts are."""

from __future__ import annotations

import time
from dataclasses import dataclass

from engine_host.protocol.errors import Problem
from engine_host.protocol.events import EngineStateEvent, JobDoneEvent, NoticeEvent
from engine_host.protocol.host import HostInfo
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import HostRole, RemoteFacts, RemoteHost, RemoteHostState, RemoteMode
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.engine.choice import state_word
from sndr_gui.models.engine.now import decode_now
from sndr_gui.models.engine.start import SERVING
from sndr_gui.models.home.no_gpu import no_gpu_word, sentences, told_of_no_gpu
from sndr_gui.models.hosts.facts import models_of
from sndr_gui.models.hosts.words import (
    STATES,
    THIS_MACHINE,
    is_mendable,
    is_missing,
    speaks_another_protocol,
    state_here,
    state_of,
)

_JOINED = frozenset(
    {
        RemoteHostState.CONNECTING,
        RemoteHostState.ASKING,
        RemoteHostState.CONNECTED,
        RemoteHostState.RECONNECTING,
    }
)
_ROLES = {
    HostRole.CONTROL: tr("control"),
    HostRole.INGRESS: tr("ingress"),
    HostRole.GPU_WORKER: tr("GPU worker"),
}
_NO_FIGURES = tr("not read yet")


@dataclass(frozen=True)
class HostCard:
    """One host, as shown; this machine has the empty name."""

    name: str
    title: str
    about: str
    word: str
    tone: str
    sentence: str
    gpus: str
    about_gpus: str
    models: str
    speed: str
    last: str
    age: str
    problem: Problem | None = None
    can_connect: bool = False
    can_retry: bool = False
    can_disconnect: bool = False
    can_show: bool = True
    can_install: bool = False
    can_start: bool = False
    can_update: bool = False
    can_uninstall: bool = False
    can_probe: bool = False


def card_here(session: Session) -> HostCard:
    """Return the card of this machine."""
    word, tone = state_here(session)
    return HostCard(
        name="",
        title=THIS_MACHINE,
        about=tr("the host of this window"),
        word=word,
        tone=tone,
        sentence="" if session.connection.connected else session.connection.sentence,
        gpus=_gpus_of(session.state.host),
        about_gpus=told_of_no_gpu(session.state.host),
        models=_models(session),
        speed=_speed(session),
        last=_last(session),
        age=_age_of(session),
    )


def card_of(
    remote: RemoteHost, session: Session | None, facts: RemoteFacts | None, program: str = ""
) -> HostCard:
    """Return the card of a host on another machine; without an engine host its facts are shown.

    `program` is this machine's version, which may be another one.
    """
    word, tone = state_of(remote, session)
    about = [_ROLES[remote.role]] if remote.role is not None else []
    about.append(remote.destination)
    if remote.address and remote.address not in remote.destination:
        about.append(remote.address)
    about.append(tr("without an engine host") if remote.mode is RemoteMode.AGENTLESS else tr("engine host"))
    if remote.version:
        about.append(remote.version)
    if remote.clock_ahead:
        off = formats.duration(abs(remote.clock_ahead))
        about.append(
            tr("clock {off} ahead", off=off) if remote.clock_ahead > 0 else tr("clock {off} behind", off=off)
        )
    told = session is not None and session.state.host is not None
    joined = remote.state in _JOINED
    connected = remote.state is RemoteHostState.CONNECTED
    answers = connected and remote.control_socket is not None
    ours = remote.mode is RemoteMode.ENGINE_HOST
    mendable = connected and ours and not answers and is_mendable(remote)
    return HostCard(
        name=remote.name,
        title=remote.name,
        about="  ·  ".join(about),
        word=word,
        tone=tone,
        sentence=_sentence(remote, session),
        gpus=_gpus_of(session.state.host) if told and session is not None else _gpus_of_facts(facts),
        about_gpus=told_of_no_gpu(session.state.host)
        if told and session is not None
        else "\n".join(sentences(facts.no_gpu if facts is not None else None)),
        models=_models(session) if told and session is not None else _engines_of_facts(facts),
        speed=_speed(session) if told and session is not None else _rate_of(remote),
        last=(_last(session) if session is not None else "") or _last_of(remote),
        age=_age_of(session) if told and session is not None else _age_of_facts(remote),
        problem=None if joined and remote.engine_host_problem is None else _problem(remote),
        can_connect=not joined,
        can_retry=remote.state is RemoteHostState.RECONNECTING,
        can_disconnect=joined,
        can_show=ours,
        can_install=connected and ours and not answers and is_missing(remote),
        can_start=mendable and not speaks_another_protocol(remote),
        can_update=(mendable and speaks_another_protocol(remote))
        or (answers and bool(program) and remote.version not in {None, program}),
        can_uninstall=ours and (answers or mendable),
        can_probe=connected,
    )


def _problem(remote: RemoteHost) -> Problem | None:
    return remote.engine_host_problem or remote.problem


def _sentence(remote: RemoteHost, session: Session | None) -> str:
    word, _tone = state_of(remote, session)
    if word in {STATES[RemoteHostState.CONNECTED][0], remote.sentence.rstrip(".").lower()}:
        # The word stands beside it.
        return ""
    lost = session is not None and remote.control_socket is not None and not session.connection.connected
    return session.connection.sentence if lost and session is not None else remote.sentence


def _gpus_of(host: HostInfo | None) -> str:
    if host is None:
        return _NO_FIGURES
    return _gpus([gpu.name for gpu in host.gpus]) if host.gpus else no_gpu_word(host)


def _gpus_of_facts(facts: RemoteFacts | None) -> str:
    if facts is None or "gpus" not in facts.read_at:
        return _NO_FIGURES
    return _gpus([gpu.name for gpu in facts.gpus])


def _gpus(names: list[str]) -> str:
    if not names:
        return tr("no GPU")
    short = [name.removeprefix("NVIDIA ").removeprefix("GeForce ") for name in names]
    return ", ".join(
        f"{short.count(name)} × {name}" if short.count(name) > 1 else name for name in dict.fromkeys(short)
    )


def _models(session: Session) -> str:
    serving = [engine.name for engine in session.state.live if engine.state in SERVING]
    others = len(session.state.live) - len(serving)
    if not serving:
        return tr("{others} not ready", others=others) if others else tr("no model runs")
    starting = tr("{others} more not ready", others=others) if others else ""
    return ", ".join(filter(None, (formats.listed(serving), starting)))


def _engines_of_facts(facts: RemoteFacts | None) -> str:
    if facts is None or "engines" not in facts.read_at:
        return _NO_FIGURES
    if not facts.engines:
        return tr("no engine found")
    # Two processes of one engine have the same words: one of them says enough.
    return formats.listed(list(dict.fromkeys(models_of(one) or one.kind for one in facts.engines)))


def _speed(session: Session) -> str:
    """Return the tokens a second of all its engines; a dash where nothing was measured."""
    found = [decode_now(session.state, one) for one in session.state.live]
    told = [rate for rate in found if rate is not None]
    return formats.rate(sum(told)) if told and session.connection.connected else formats.UNMEASURED


def _last(session: Session) -> str:
    """Return what happened last on a host that is worth a look, with its age."""
    event = session.state.last_event
    match event:
        case EngineStateEvent():
            what = f"{event.engine.name}: {state_word(event.engine)}"
        case JobDoneEvent():
            what = f"{event.job.title}: {word_of(event.job.state.value)}"
        case NoticeEvent():
            what = event.problem.message if event.problem is not None else event.text
        case _:
            return ""
    return f"{formats.shortened(what, 80)}, {formats.age(max(0.0, time.time() - event.at))}"


def _rate_of(remote: RemoteHost) -> str:
    """Return the tokens a second that this machine's host last measured there."""
    return formats.rate(remote.tokens_per_second) if remote.connected_at else formats.UNMEASURED


def _last_of(remote: RemoteHost) -> str:
    if remote.last_event is None or remote.last_event_at is None:
        return ""
    ago = formats.age(max(0.0, time.time() - remote.last_event_at))
    return f"{formats.shortened(remote.last_event, 80)}, {ago}"


def _age_of(session: Session) -> str:
    if session.connection.connected:
        return tr("live")
    lost = session.connection.lost_at
    return tr("as of {age}", age=formats.age(time.time() - lost)) if lost is not None else ""


def _age_of_facts(remote: RemoteHost) -> str:
    if remote.facts_at is None:
        return tr("never read")
    return tr("read {age}", age=formats.age(max(0.0, time.time() - remote.facts_at)))
