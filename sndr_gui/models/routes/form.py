"""A route as it is being typed: texts, and the request that they make or the reason why they make none."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from engine_host.protocol.endpoint.model_ids import fault_of_id, suggested_id
from engine_host.protocol.endpoint.routes import NextProvider, Provider, RouteTargets


@dataclass
class RouteForm:
    """The fields of the dialog, as typed."""

    route_id: str = ""
    engines: str = ""
    asks_provider: bool = False
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
    fallback: bool = False
    further: tuple[NextProvider, ...] = ()

    @classmethod
    def of(cls, route_id: str, targets: RouteTargets | None) -> RouteForm:
        """Return the form of a route."""
        if targets is None:
            return cls(route_id)
        provider = targets.provider
        form = cls(route_id, ", ".join(targets.engines), provider is not None)
        form.allow_remote, form.fallback = targets.allows(provider), targets.fallback
        form.further = targets.further
        if provider is not None:
            form.url, form.model = provider.url, provider.model
            form.key_variable, form.key_file = provider.key_variable or "", provider.key_file or ""
            form.context, form.slots = str(provider.context), str(provider.slots)
            form.tools, form.images, form.embeddings = provider.tools, provider.images, provider.embeddings
        return form

    def read(self) -> tuple[RouteTargets | None, str]:
        """Return what was typed as a request, or None with what is missing or wrong."""
        if not self.route_id.strip():
            return None, "Give the route an ID: the model that clients ask for."
        if (fault := fault_of_id(self.route_id.strip())) is not None:
            better = suggested_id(self.route_id)
            return None, f"The ID cannot be used: {fault}." + (f" Call it {better}." if better else "")
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
            raise ValueError("Name an engine, a preset or a model, or a provider.")
        return RouteTargets(
            engines=engines,
            provider=self._provider() if self.asks_provider else None,
            allow_remote=self.asks_provider and self.allow_remote,
            fallback=self.asks_provider and bool(engines) and self.fallback,
            further=self.further if self.asks_provider else (),
        )

    def _provider(self) -> Provider:
        for value, name in ((self.url, "base URL"), (self.model, "model"), (self.context, "context")):
            if not value.strip():
                raise ValueError(f"Give the provider's {name}.")
        return Provider(
            url=self.url.strip(),
            model=self.model.strip(),
            key_variable=self.key_variable.strip() or None,
            key_file=self.key_file.strip() or None,
            context=_number(self.context, "context"),
            slots=_number(self.slots, "number of requests at a time"),
            tools=self.tools,
            images=self.images,
            embeddings=self.embeddings,
        )


def _number(text: str, name: str) -> int:
    plain = text.strip().replace(",", "").replace("_", "")
    if not (plain.isascii() and plain.isdigit() and len(plain) < 12):
        raise ValueError(f"The {name} is a whole number.")
    return int(plain)


_NAMES = {
    "key_variable": "The key's variable",
    "key_file": "The key's file",
    "context": "The context",
    "slots": "Requests at a time",
    "url": "The base URL",
    "model": "The model",
    "engines": "Engines",
}


def _sentence(where: tuple[int | str, ...], what: str) -> str:
    name = next((_NAMES[str(part)] for part in reversed(where) if str(part) in _NAMES), "")
    said = what.removeprefix("Value error, ")
    return f"{name}: {said}." if name else f"{said[:1].upper()}{said[1:]}."
