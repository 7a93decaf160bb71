"""A route as it is being typed: texts, and the request that they make or the reason why they make none."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import ValidationError

from engine_host.protocol.endpoint.model_ids import fault_of_id, suggested_id
from engine_host.protocol.endpoint.routes import NextProvider, Provider, RouteTargets, origin_of
from engine_host.protocol.language import tr
from sndr_gui.kit.numbers import whole


@dataclass
class ProviderForm:
    """The fields of one provider, as typed.

    `given_for` is the address that key and permission were given for; empty where they are of no address yet.
    """

    url: str = ""
    model: str = ""
    key_variable: str = ""
    key_file: str = ""
    context: str = ""
    slots: str = "8"
    tools: bool = True
    images: bool = False
    embeddings: bool = False
    allow_remote: bool = False
    given_for: str = ""

    @classmethod
    def of(cls, one: NextProvider) -> ProviderForm:
        """Return the form of a provider."""
        provider = one.provider
        return cls(
            provider.url,
            provider.model,
            provider.key_variable or "",
            provider.key_file or "",
            str(provider.context),
            str(provider.slots),
            provider.tools,
            provider.images,
            provider.embeddings,
            one.allow_remote,
            provider.url,
        )

    @property
    def title(self) -> str:
        """The provider in few words."""
        there = host_of(self.url.strip())
        return tr(
            "{model} at {there}", model=self.model.strip() or tr("a model"), there=there or tr("an address")
        )

    def moved(self) -> bool:
        """Forget, once, what was given for another address; True where that was done."""
        if not self.given_for or origin_of(self.url) == origin_of(self.given_for):
            return False
        self.given_for, self.key_variable, self.key_file, self.allow_remote = "", "", "", False
        return True

    def read(self) -> NextProvider:
        """Return what was typed. Raises ValueError and ValidationError for what is missing or wrong."""
        for value, sentence in (
            (self.url, tr("Give the provider's base URL.")),
            (self.model, tr("Give the provider's model.")),
            (self.context, tr("Give the provider's context.")),
        ):
            if not value.strip():
                raise ValueError(sentence)
        provider = Provider(
            url=self.url.strip(),
            model=self.model.strip(),
            key_variable=self.key_variable.strip() or None,
            key_file=self.key_file.strip() or None,
            context=_number(self.context, tr("The context is a whole number."), tokens=True),
            slots=_number(self.slots, tr("The number of requests at a time is a whole number.")),
            tools=self.tools,
            images=self.images,
            embeddings=self.embeddings,
        )
        return NextProvider(provider=provider, allow_remote=self.allow_remote)


@dataclass
class RouteForm:
    """The fields of the dialog, as typed; `providers` are asked in their order."""

    route_id: str = ""
    engines: str = ""
    asks_provider: bool = False
    providers: list[ProviderForm] = field(default_factory=lambda: [ProviderForm()])
    fallback: bool = False

    @classmethod
    def of(cls, route_id: str, targets: RouteTargets | None) -> RouteForm:
        """Return the form of a route."""
        if targets is None:
            return cls(route_id)
        providers = [ProviderForm.of(one) for one in targets.providers]
        return cls(
            route_id,
            ", ".join(targets.engines),
            bool(providers),
            providers or [ProviderForm()],
            targets.fallback,
        )

    def read(self) -> tuple[RouteTargets | None, str]:
        """Return what was typed as a request, or None with what is missing or wrong."""
        if not self.route_id.strip():
            return None, tr("Give the route an ID: the model that clients ask for.")
        if (fault := fault_of_id(self.route_id.strip())) is not None:
            better = suggested_id(self.route_id)
            return None, tr("The ID cannot be used: {fault}.", fault=fault) + (
                (" " + tr("Call it {better}.", better=better)) if better else ""
            )
        try:
            return self._targets(), ""
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return None, _sentence(first["loc"], first["msg"])
        except ValueError as error:
            return None, str(error)

    def _targets(self) -> RouteTargets:
        engines = tuple(name for part in self.engines.split(",") if (name := part.strip()))
        if not engines and not self.asks_provider:
            raise ValueError(tr("Name an engine, a preset or a model, or a provider."))
        providers = self._read_providers()
        if not providers:
            return RouteTargets(engines=engines)
        return RouteTargets(
            engines=engines,
            provider=providers[0].provider,
            allow_remote=providers[0].allow_remote,
            fallback=bool(engines) and self.fallback,
            further=tuple(providers[1:]),
        )

    def _read_providers(self) -> list[NextProvider]:
        """Return the providers in their order; of several the number of a wrong one is said."""
        found: list[NextProvider] = []
        for number, form in enumerate(self.providers if self.asks_provider else (), 1):
            try:
                found.append(form.read())
            except ValidationError as error:
                if len(self.providers) == 1:
                    raise
                first = error.errors(include_url=False)[0]
                said = _sentence(first["loc"], first["msg"])
                raise ValueError(tr("Provider {number}: {said}", number=number, said=said)) from error
            except ValueError as error:
                raise ValueError(
                    tr("Provider {number}: {said}", number=number, said=error)
                    if len(self.providers) > 1
                    else str(error)
                ) from error
        return found


def host_of(url: str) -> str:
    """Return host and port of an address, as the targets of a route are called; of a socket all of it."""
    try:
        parts = urlsplit(url)
        return parts.netloc.rpartition("@")[2] or url
    except ValueError:
        return url


def _number(text: str, sentence: str, tokens: bool = False) -> int:
    try:
        return whole(text, tokens)
    except ValueError as error:
        raise ValueError(f"{sentence} {error}".strip()) from error


_NAMES = {
    "key_variable": tr("The key's variable"),
    "key_file": tr("The key's file"),
    "context": tr("The context"),
    "slots": tr("Requests at a time"),
    "url": tr("The base URL"),
    "model": tr("The model"),
    "engines": tr("Engines"),
}


def _sentence(where: tuple[int | str, ...], what: str) -> str:
    name = next((_NAMES[str(part)] for part in reversed(where) if str(part) in _NAMES), "")
    said = what.removeprefix("Value error, ")
    return f"{name}: {said}." if name else f"{said[:1].upper()}{said[1:]}."
