"""All that one client has to be told, as texts to copy, fields of its form, notes and warnings."""

from engine_host.connect.clients.definition import Client
from engine_host.connect.facts import Facts
from engine_host.connect.formats.text import written
from engine_host.connect.machine import Machine
from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.connect import ClientField, ClientSettings, SettingsText
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_ROOM = 2
"""How many first requests a context should hold before an agent has to summarise at once."""


def settings_of(client: Client, machine: Machine, facts: Facts) -> ClientSettings:
    """Return a client's settings. Raises HostError(unsupported) for one that cannot reach the endpoint."""
    check_possible(client)
    texts = [
        SettingsText(
            place=str(config.path(machine)),
            language=config.format.value,
            text=written(config.format, config.wanted(facts)),
        )
        for config in client.files
    ]
    texts += [
        SettingsText(place=snippet.place, language=snippet.language, text=snippet.text)
        for snippet in client.snippets(facts)
    ]
    return ClientSettings(
        client=client.name,
        title=client.title,
        url=facts.url,
        model=facts.model,
        context=facts.context,
        max_output=facts.output,
        key_needed=facts.key_needed,
        texts=tuple(texts),
        fields=tuple(
            ClientField(caption=caption, value=value) for caption, value in client.fields(facts).items()
        ),
        notes=(*client.notes(facts), *_common_notes(facts)),
        warnings=tuple(_warnings(client, facts)),
    )


def check_possible(client: Client) -> None:
    """Raise HostError(unsupported) for a client that cannot reach the endpoint, with the reason."""
    if client.impossible:
        raise HostError(
            Reason.UNSUPPORTED,
            tr("{title} cannot use an endpoint of this machine.", title=client.title),
            cause=client.impossible,
            fix=Fix(text=tr("Choose another client."), command="sndr connect"),
        )


def _common_notes(facts: Facts) -> list[str]:
    notes = []
    if facts.on_demand:
        notes.append(
            tr(
                "{model} does not run now: the first request for it loads it, and waits for "
                "that. The context is the one that it is loaded with.",
                model=facts.model,
            )
        )
    if facts.key_needed:
        notes.append(
            tr(
                "The endpoint asks for a key: make one with `sndr keys create NAME`, and put "
                "it where it says SNDR_API_KEY. No key is written into a file here."
            )
        )
    if facts.encrypted:
        notes.append(
            tr(
                "The client has to trust the certificate, which has to name this address "
                "(--url gives another). Programs on Node take an authority of your own from "
                "NODE_EXTRA_CA_CERTS, those on Python from SSL_CERT_FILE."
            )
        )
    return notes


def _warnings(client: Client, facts: Facts) -> list[str]:
    found = []
    if facts.provider is not None:
        found.append(
            tr(
                "What is asked of {model} leaves this machine: {provider} answers it.",
                model=facts.model,
                provider=facts.provider,
            )
        )
    need = client.first_request
    if need is not None and facts.context < _ROOM * need:
        outcome = (
            tr("does not fit")
            if facts.context < need
            else tr("leaves no room, so it summarises again and again")
        )
        found.append(
            tr(
                "{model} has a context of {context} tokens. The first request of {title} alone "
                "had {need} with the bundled model (with a larger vocabulary fewer): it "
                "{outcome}. {advice}",
                model=facts.model,
                context=f"{facts.context:,}",
                title=client.title,
                need=f"{need:,}",
                outcome=outcome,
                advice=_longer(facts, _ROOM * need),
            )
        )
    if not facts.tools and client.first_request is not None:
        found.append(
            tr(
                "{model} calls no tools, without which {title} can do nothing but talk.",
                model=facts.model,
                title=client.title,
            )
        )
    return found


def _longer(facts: Facts, wanted: int) -> str:
    """Return what to do about a context that is too short for `wanted` tokens."""
    most = facts.context_trained
    if most is None or most >= wanted:
        return tr("Start the model with a longer --context ({wanted} or more).", wanted=f"{wanted:,}")
    return tr(
        "Choose another model: this one was trained for {most} tokens, and cannot have more.",
        most=f"{most:,}",
    )
