"""Models of which only the config on Hugging Face is known: read when somebody asks, used from then on."""

import asyncio

from engine_host.core.errors import HostError
from engine_host.fit.parts import Basis
from engine_host.fit.shapes.read import model_of_config
from engine_host.fit.start import Model
from engine_host.library.hub.configs import Hub, HubConfig, is_name
from engine_host.operations.performs import performs
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import HubModel, HubPage, ReadFromHub
from engine_host.protocol.operations import table as ops


class HubOperations:
    """Answers `/v1/fit/hub`, and hands fit the models that were read before."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    @performs(ops.HUB_MODELS)
    async def page(self) -> HubPage:
        """Return what was read before, newest first; sends nothing."""
        found = await asyncio.to_thread(self._hub.all_known)
        return HubPage(endpoint=self._hub.endpoint, models=tuple(map(_described, found)))

    @performs(ops.READ_FROM_HUB)
    async def read(self, asked: ReadFromHub) -> HubModel:
        """Ask the hub. Raises HostError: see `Hub.read`."""
        return _described(await self._hub.read(asked.repository.strip(), asked.revision.strip() or "main"))

    def model(self, name: str, bits: float | None) -> Model | None:
        """A model that was read before, as `organisation/model[@revision]`; None for any other text.

        Raises HostError(model_file_missing) for such a name of which nothing is known, HostError(unsupported)
        for a config that does not say its shape.
        """
        if not is_name(name):
            return None
        known = self._hub.known(name)
        if known is None:
            raise _not_read(name, self._hub.endpoint)
        length = known.config.get("max_position_embeddings")
        return model_of_config(
            known.config,
            f"{known.repository}@{known.revision[:8]}",
            bits=bits,
            context=length if type(length) is int else None,
            size=known.size if bits is None else None,
            basis=Basis.HUB,
        )


def _described(found: HubConfig) -> HubModel:
    return HubModel(
        model=found.name,
        repository=found.repository,
        revision=found.revision,
        endpoint=found.endpoint,
        read_at=found.read_at,
        size=found.size,
    )


def _not_read(name: str, endpoint: str) -> HostError:
    repository, _, revision = name.partition("@")
    body = {"repository": repository, **({"revision": revision} if revision else {})}
    return HostError(
        Reason.MODEL_FILE_MISSING,
        tr(
            "There is no model {name} on this machine, and its config was not read from Hugging Face.",
            name=name,
        ),
        cause="Nothing leaves this machine unasked.",
        fix=Fix(
            text=tr("Read its config.json from {endpoint}.", endpoint=endpoint),
            command=f"sndr fit {name} --online",
        ),
        evidence={"wanted": name, "hub": body},
    )
