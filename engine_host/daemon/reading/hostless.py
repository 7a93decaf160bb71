"""Operations that only read, performed in the process that asks where no host runs: no lock, no socket."""

import asyncio
import logging
from collections.abc import Mapping
from inspect import isawaitable
from types import MappingProxyType, TracebackType
from typing import Any, Self

from engine_host.core.errors import HostError, defect
from engine_host.core.event_log import EventLog
from engine_host.core.paths import Folders
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.daemon.reading.services import Reading
from engine_host.operations.performs import functions
from engine_host.protocol.base import Command, Query
from engine_host.protocol.errors import ErrorAnswer
from engine_host.protocol.language import sending
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Nothing, Operation

PERFORMED: Mapping[str, str] = MappingProxyType(
    {
        operation.name: service
        for service, operations in {
            "models": (ops.MODELS, ops.SCAN_MODELS),
            "presets": (ops.PRESETS, ops.PRESET, ops.CATALOG, ops.RESOLVE_PRESET),
            "own_presets": (ops.LINT_PRESET, ops.EXPORT_PRESET),
            "verdicts": (ops.JUDGE_PRESETS,),
            "fit": (ops.FIT, ops.FIT_STARTS),
            "hub": (ops.READ_FROM_HUB,),
            "patches": (ops.PATCHES, ops.PATCH, ops.CHECK_PATCHES, ops.PLAN_PRESET_PATCHES),
        }.items()
        for operation in operations
    }
)
"""The operations that can be asked here, each with the service of `Reading` that performs it."""


class Hostless:
    """Answers like a host whose engines have ended; a host that starts meanwhile is not in its way."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._closed = False
        self._opened: Store | None = None
        settings = SettingsFile(folders.settings)
        settings.load_what_holds()
        self._reading = Reading(folders, settings, EventLog(), self._store, stop=lambda: self._closed)
        self._runner = asyncio.Runner()
        # What a host writes into its log is for nobody's terminal.
        logging.getLogger("engine_host").addHandler(logging.NullHandler())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._runner.close()
        if self._opened is not None:
            self._opened.close()

    @property
    def left_engines(self) -> bool:
        """True if an earlier host left engines; a host takes them up, and knows what they hold."""
        if not self._folders.store.exists():
            return False
        from engine_host.engines.process.saved_engine import SavedEngines

        return bool(SavedEngines(self._store()).running())

    def perform(
        self, operation: Operation[Any, Any], asked: Command | Query, path: Mapping[str, str]
    ) -> bytes:
        """Carry an operation out; the JSON of its answer. Raises HostError."""
        with sending():
            answer, refused = self._runner.run(self._perform(operation, asked, path))
        if refused is not None:
            raise HostError.from_problem(ErrorAnswer.model_validate_json(refused).error)
        return answer.encode()

    async def _perform(
        self, operation: Operation[Any, Any], asked: Command | Query, path: Mapping[str, str]
    ) -> tuple[str, str | None]:
        """The JSON of the answer or of the refusal, which is read in the language of whoever asked."""
        given: list[Any] = [path[name] for name in operation.parameters]
        if operation.request is not Nothing:
            given.append(asked)
        try:
            service = getattr(self._reading, PERFORMED[operation.name])
            done = functions((service,))[operation.name](*given)
            return (await done if isawaitable(done) else done).model_dump_json(), None
        except HostError as error:
            problem = error.problem
        except Exception as error:
            logging.getLogger(__name__).error("%s failed", operation.name, exc_info=error)
            problem = defect(error)
        return "", ErrorAnswer(error=problem).model_dump_json()

    def _store(self) -> Store:
        if self._opened is None:
            self._opened = Store(self._folders.store)
        return self._opened
