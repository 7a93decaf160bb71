"""The models of this machine."""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from engine_host.core.event_log import EventLog
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.library.belongings import companions_of, files_of, snapshot_of
from engine_host.library.file_hashes import FileHashes
from engine_host.library.hub.cache import hash_in_name
from engine_host.library.index import ModelIndex
from engine_host.library.scan import hub_name
from engine_host.operations.performs import performs
from engine_host.protocol.events import ModelsChangedEvent
from engine_host.protocol.models import ModelFile, ModelPage
from engine_host.protocol.operations import table as ops

_WEIGHTS = (".gguf", ".safetensors")
# Ollama's contents have no names of their own.
_BLOB = re.compile(r"sha256-[0-9a-f]{64}")


class ModelOperations:
    """The model files that were found, and the look for new ones."""

    def __init__(
        self,
        index: ModelIndex,
        settings: SettingsFile,
        events: EventLog,
        downloads: Callable[[], Path],
        store: Store | None = None,
    ) -> None:
        """`downloads` is the folder that gets models that are fetched; `store` keeps hashes of files."""
        self.downloads = downloads
        self._index = index
        self._settings = settings
        self._events = events
        self._hashes = FileHashes(store) if store is not None else None

    @performs(ops.MODELS)
    async def page(self) -> ModelPage:
        """Return the models known; the folders are looked through when they were not yet."""
        return await self._page(await self._index.models(rescan=False))

    @performs(ops.SCAN_MODELS)
    async def scan(self) -> ModelPage:
        """Look through the model folders again."""
        found = await self._index.models(rescan=True)
        self.tell()
        return await self._page(found)

    def tell(self) -> None:
        """Say that the library is another now."""
        self._events.publish(ModelsChangedEvent())

    async def find(self, name: str) -> ModelFile:
        """Return a model by id, name or path. Raises HostError: model_file_missing, and of reading it."""
        return (await self._index.find(name)).file

    async def listed(self, rescan: bool) -> Sequence[ModelFile]:
        """Return the models alone, looked for again or as known."""
        return (await self.scan()).models if rescan else await self._index.models(rescan=False)

    async def _page(self, found: tuple[ModelFile, ...]) -> ModelPage:
        shown = await asyncio.to_thread(lambda: [_placed(one) for one in found])
        return ModelPage(
            seq=self._events.seq,
            models=tuple(
                one.model_copy(update={"verified": self._verified(promised)}) for one, promised in shown
            ),
            folders=self._settings.current.models.folders,
        )

    def _verified(self, promised: Sequence[tuple[Path, str | None]]) -> bool | None:
        """Tell whether the hashes of all weights were computed and are those that their places promise."""
        said: set[bool | None] = set()
        for path, name in promised:
            known = self._hashes.known(path) if self._hashes is not None and name else None
            said.add(known.is_called(name) if known is not None and name else None)
        return False if False in said else None if not said or None in said else True


def _placed(model: ModelFile) -> tuple[ModelFile, list[tuple[Path, str | None]]]:
    """Return a model with what its place says of it, and the hashes that its weights have to have; blocks."""
    path = Path(model.path)
    snapshot = snapshot_of(path)
    try:
        companions = tuple(str(one) for one in companions_of(path))
        weights = [
            one for one in files_of(path) if one.name.lower().endswith(_WEIGHTS) or _BLOB.fullmatch(one.name)
        ]
    except OSError:
        return model, []
    update: dict[str, object] = {"companions": companions}
    if snapshot is not None:
        update |= {"repository": hub_name(snapshot), "commit": snapshot.name}
    return model.model_copy(update=update), [(one, hash_in_name(one)) for one in weights]
