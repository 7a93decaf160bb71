"""The models of this machine."""

from collections.abc import Callable, Sequence
from pathlib import Path

from engine_host.core.event_log import EventLog
from engine_host.core.settings import SettingsFile
from engine_host.library.index import ModelIndex
from engine_host.operations.performs import performs
from engine_host.protocol.events import ModelsChangedEvent
from engine_host.protocol.models import ModelFile, ModelPage
from engine_host.protocol.operations import table as ops


class ModelOperations:
    """The model files that were found, and the look for new ones."""

    def __init__(
        self, index: ModelIndex, settings: SettingsFile, events: EventLog, downloads: Callable[[], Path]
    ) -> None:
        """`downloads` is the folder that gets models that are fetched."""
        self.downloads = downloads
        self._index = index
        self._settings = settings
        self._events = events

    @performs(ops.MODELS)
    async def page(self) -> ModelPage:
        """Return the models known; the folders are looked through when they were not yet."""
        return self._page(await self._index.models(rescan=False))

    @performs(ops.SCAN_MODELS)
    async def scan(self) -> ModelPage:
        """Look through the model folders again."""
        found = await self._index.models(rescan=True)
        self._events.publish(ModelsChangedEvent())
        return self._page(found)

    async def find(self, name: str) -> ModelFile:
        """Return a model by id, name or path. Raises HostError: model_file_missing, and of reading it."""
        return (await self._index.find(name)).file

    async def listed(self, rescan: bool) -> Sequence[ModelFile]:
        """Return the models alone, looked for again or as known."""
        return (await (self.scan() if rescan else self.page())).models

    def _page(self, found: tuple[ModelFile, ...]) -> ModelPage:
        folders = self._settings.current.models.folders
        return ModelPage(seq=self._events.seq, models=found, folders=folders)
