"""The real catalogue and the real calculator behind the fake host, for the pages that are about them."""

from collections.abc import Collection
from pathlib import Path
from typing import cast

from starlette.applications import Starlette

from engine_host.api.answers import on_host_error
from engine_host.api.routes import available
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets as shipped
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.launch.dependencies import Environment
from engine_host.launch.preflight.machine import MachineState
from engine_host.library.hub.configs import Hub
from engine_host.library.index import IndexedModel
from engine_host.operations.fit import FitOperations
from engine_host.operations.hub import HubOperations
from engine_host.operations.performs import functions
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.operations.presets.own import OwnPresetOperations
from engine_host.operations.presets.verdicts import PresetVerdictOperations
from engine_host.protocol.errors import Reason
from engine_host.protocol.models import ModelFile
from tests.views.conftest import Stage


class RealCatalog:
    """Answers `/v1/presets`, `/v1/catalog` and `/v1/fit` for real; a person's own presets are in `own`."""

    def __init__(self, stage: Stage, folder: Path, endpoint: str = "http://127.0.0.1:9") -> None:
        self.own = folder / "presets"
        self.store = Store(folder / "store.db")
        settings = SettingsFile(folder / "settings.toml")
        self.presets = PresetOperations(shipped, self.own, settings, cast(EventLog, stage.host), lambda: ())
        self.hub = HubOperations(Hub(folder / "hub", {"HF_ENDPOINT": endpoint}))
        self.fit = FitOperations(
            _no_model,
            _no_models,
            self.presets,
            lambda: (),
            lambda: (16 << 30, 12 << 30),
            MachineState,
            lambda: (),
            self.store,
            self.hub.model,
        )
        self.verdicts = PresetVerdictOperations(
            self.presets, self.fit, _no_models, _no_server, _no_environment
        )
        performed = functions(
            (
                self.presets,
                OwnPresetOperations(self.presets, PresetConsents(self.store)),
                self.fit,
                self.hub,
                self.verdicts,
            )
        )
        stage.host.real = Starlette(
            routes=available(performed), exception_handlers={HostError: on_host_error}
        )
        stage.host.real_paths = ("/v1/presets", "/v1/catalog", "/v1/fit")


async def _no_model(wanted: str, _formats: Collection[str]) -> IndexedModel:
    raise HostError(Reason.MODEL_FILE_MISSING, f"There is no model {wanted}.")


async def _no_models() -> tuple[ModelFile, ...]:
    return ()


async def _no_server() -> ServerCapabilities:
    raise HostError(Reason.ENGINE_UNUSABLE, "There is no server of llama.cpp.")


async def _no_environment(_wanted: str | None) -> Environment:
    raise HostError(Reason.ENGINE_UNUSABLE, "There is no environment of vLLM.")
