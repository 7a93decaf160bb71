"""The facts of the endpoint that go into a client's settings, as the running host tells them."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine_host.core.errors import HostError
from engine_host.core.keys.in_header import key_in_header
from engine_host.protocol.endpoint.connect import EndpointModel, EndpointModelPage
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Endpoint
from engine_host.protocol.language import tr

KEY_VARIABLE = "SNDR_API_KEY"
"""The variable in which a client finds the key, where it needs one: a key is never written into a file."""
ANY_KEY = "sk-local"
"""A key for clients that insist on one where the endpoint needs none."""
_SHARE_OF_OUTPUT = 4
_MOST_OUTPUT = 32_000


@dataclass(frozen=True)
class Facts:
    """One model behind one address; `url` ends in `/v1`, `context` and `output` are tokens.

    `output` is the part of the context that an answer may take: a quarter, and at most 32,000. `provider` is
    the host elsewhere that answers, where it is no engine of this program. `on_demand`: the next request
    loads it. `context_trained`: the longest context of the model itself, None where it is not known.
    """

    url: str
    model: str
    context: int
    key_needed: bool
    tools: bool = True
    images: bool = False
    provider: str | None = None
    on_demand: bool = False
    context_trained: int | None = None

    @property
    def root(self) -> str:
        """The address without `/v1`, for clients that add it themselves."""
        return self.url.removesuffix("/v1")

    @property
    def output(self) -> int:
        """The most tokens of one answer, and at least one."""
        return max(1, min(self.context // _SHARE_OF_OUTPUT, _MOST_OUTPUT))

    @property
    def input(self) -> int:
        """The tokens that are left for what is asked."""
        return max(1, self.context - self.output)

    @property
    def encrypted(self) -> bool:
        """Tell whether the address is one of https."""
        return self.url.startswith("https:")


def key_from(environment: Mapping[str, str]) -> str | None:
    """Return the key that a client would have; None where the variable is not set.

    Raises HostError(unauthorized) for what is no key; what it is, it does not say.
    """
    found = environment.get(KEY_VARIABLE)
    if not found:
        return None
    key = key_in_header(found)
    if key is None:
        raise HostError(
            Reason.UNAUTHORIZED,
            tr("{key_variable} holds no key.", key_variable=KEY_VARIABLE),
            cause=tr("A key is one line of letters, digits and signs."),
            fix=Fix(text=tr("Put a key that holds into it, or unset it."), command="sndr keys list"),
        )
    return key


def facts_of(
    endpoint: Endpoint, page: EndpointModelPage, model: str | None = None, url: str | None = None
) -> Facts:
    """Return the facts of one model; `url` is an address by which a proxy or a name of one's own reaches it.

    Raises HostError(no_engine_runs), HostError(not_found) for a model that cannot be asked,
    HostError(bad_request) for an address that is none.
    """
    chosen = _chosen(page, model)
    return Facts(
        url=address(endpoint, url),
        model=chosen.id,
        context=chosen.context,
        key_needed=endpoint.key_required,
        tools=chosen.tools is not False,
        images=chosen.images,
        provider=chosen.provider,
        on_demand=chosen.on_demand,
        context_trained=chosen.context_trained,
    )


def address(endpoint: Endpoint, url: str | None = None) -> str:
    """Return the endpoint's address as clients here reach it, ending in `/v1`.

    Raises HostError(engine_not_ready) while it is not served, HostError(bad_request).
    """
    found = checked_url(url) if url else endpoint.local_url or endpoint.url
    if found is None:
        raise HostError(
            Reason.ENGINE_NOT_READY,
            tr("The endpoint is not being served."),
            cause=tr("Its address could not be taken, or the host is just starting or ending."),
            fix=Fix(text=tr("See what the host says."), command="sndr status"),
        )
    return found


def checked_url(url: str) -> str:
    """Return an address that a person gave, ending in `/v1`; raises HostError(bad_request)."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    odd = any(letter.isspace() or not letter.isprintable() or letter in "\"'\\<>`" for letter in url)
    if not fine or odd or parts.query or parts.fragment or parts.username is not None:
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{url} is no address of an endpoint.", url=f"{url[:200]!r}"),
            cause=tr("It is http:// or https://, a name, a port and a path, and nothing else."),
            fix=Fix(
                text=tr("Give it as the client will reach it."),
                command="sndr connect --url https://box.example.org/llm/v1",
            ),
        )
    plain = url.rstrip("/")
    return plain if plain.endswith("/v1") else f"{plain}/v1"


def _chosen(page: EndpointModelPage, model: str | None) -> EndpointModel:
    names = [entry.id for entry in page.models]
    if model is not None:
        if model not in names:
            raise HostError(
                Reason.NOT_FOUND,
                tr("No model called {model} runs, and no request may load one.", model=f"{model[:200]!r}"),
                cause=tr("Those that can be asked: {names}.", names=", ".join(names) or tr("none")),
                fix=Fix(text=tr("Name one of them, or start it."), command="sndr status"),
            )
        return page.models[names.index(model)]
    for entry in page.models:
        if entry.chat:
            return entry
    raise HostError(
        Reason.NO_ENGINE_RUNS,
        tr(
            "No model runs, or may be loaded by a request, that could hold a conversation: "
            "there is no name and no context to tell."
        ),
        cause=tr("What is written into a client's settings is what the running engine says, never a guess."),
        fix=Fix(text=tr("Start one in another terminal."), command="sndr run --demo"),
    )
