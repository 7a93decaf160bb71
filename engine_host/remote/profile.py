"""The engines of a host whose command lines a person keeps as right: those chosen, or the user's own."""

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import KeepProfile, RemoteEngine, RemoteFacts
from engine_host.remote.lints import port_of

Chosen = tuple[tuple[RemoteEngine, ...], tuple[RemoteEngine, ...]]
"""The engines that are kept, and those that are not."""


def chosen_engines(facts: RemoteFacts, asked: KeepProfile) -> Chosen:
    """Return the engines to keep, and the others.

    Raises HostError(conflict) where none runs, or none of this user; HostError(not_found) for a word that
    means none.
    """
    if not facts.engines:
        raise HostError(
            Reason.CONFLICT,
            tr("No engine is known to run on {host}.", host=facts.host),
            cause="Its facts were not read yet, or nothing ran when they were.",
            fix=Fix(text="Read its facts anew.", command=f"sndr host probe {facts.host}"),
        )
    if asked.engines:
        return _split(facts, {engine.pid for word in asked.engines for engine in _named(facts, word)})
    if asked.all_engines:
        return facts.engines, ()
    own = {engine.pid for engine in facts.engines if engine.user == facts.user}
    if not own:
        raise HostError(
            Reason.CONFLICT,
            tr(
                "None of the engines on {host} is of {user}.",
                host=facts.host,
                user=facts.user or tr("the user that ssh logs in as"),
            ),
            cause=tr("There are: {listed}.", listed=_listed(facts.engines)),
            fix=Fix(
                text="Name those that are yours, by process, port or kind, or keep them all.",
                command=f"sndr host profile {facts.host} --keep --engine {facts.engines[0].pid}",
            ),
        )
    return _split(facts, own)


def _named(facts: RemoteFacts, word: str) -> list[RemoteEngine]:
    found = [
        engine
        for engine in facts.engines
        if word in {engine.kind, str(engine.pid)} or (word == str(port_of(engine)) and port_of(engine))
    ]
    if not found:
        raise HostError(
            Reason.NOT_FOUND,
            tr("No engine on {host} is {word}.", host=facts.host, word=repr(word[:80])),
            cause=tr("There are: {listed}.", listed=_listed(facts.engines)),
            fix=Fix(text="Read its facts anew.", command=f"sndr host probe {facts.host}"),
        )
    return found


def _split(facts: RemoteFacts, pids: set[int]) -> Chosen:
    chosen = tuple(engine for engine in facts.engines if engine.pid in pids)
    return chosen, tuple(engine for engine in facts.engines if engine.pid not in pids)


def _listed(engines: tuple[RemoteEngine, ...]) -> str:
    return ", ".join(
        f"{one.kind} of {one.user} (process {one.pid}, port {port_of(one)})" for one in engines[:10]
    )
