"""The folders that models are looked for in, as the settings say now; the models of engines taken up."""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.core.package_data import resources
from engine_host.core.settings import SettingsFile
from engine_host.library.hub.cache import cache_folder
from engine_host.library.index import ModelIndex
from engine_host.library.scan import FoundModel, Place, find_models, other_programs
from engine_host.protocol.engines import Engine
from engine_host.protocol.models import ModelOrigin

_log = logging.getLogger(__name__)


class ModelFolders:
    """Looks through the folders of a person, of other programs and of this one."""

    def __init__(self, settings: SettingsFile, data: Path, stop: Callable[[], bool]) -> None:
        """`stop` ends a look that is under way."""
        self._settings = settings
        self._data = data
        self._stop = stop

    def downloads(self) -> Path:
        """Return the folder where a person puts models that they fetch: always looked through."""
        folders = self._settings.current.models.folders
        return files.expanded(folders[0]) if folders else self._data / "models"

    def hub_downloads(self) -> Path:
        """Return the folder, laid out as the hub's cache, that gets models of the hub: the cache itself.

        Where a person has folders of other programs left alone, it is this program's own.
        """
        if self._settings.current.models.other_programs:
            return cache_folder(os.environ)
        return self._data / "models"

    def scan(self) -> Sequence[FoundModel]:
        """Return every model that is there."""
        models = self._settings.current.models
        places = [Place(resources() / "models", ModelOrigin.BUNDLED, "comes with the program")]
        places += [Place(files.expanded(name), ModelOrigin.FOLDER, name) for name in models.folders]
        places.append(Place(self._data / "models", ModelOrigin.FOLDER, "this program's own folder"))
        if models.other_programs:
            places += other_programs()
        return find_models(places, stop=self._stop)


def demo_model() -> Path | None:
    """Return the GGUF file that comes with the program."""
    bundled = find_models([Place(resources() / "models", ModelOrigin.BUNDLED, "")])
    return next((one.path for one in bundled if one.path.suffix == ".gguf"), None)


async def read_models_of(engines: Sequence[Engine], index: ModelIndex) -> None:
    """Know what the models of engines taken up can do; who starts an engine has read its files."""
    for engine in engines:
        try:
            await index.find(engine.plan.model_path)
        except HostError as error:
            # It serves without: its files may be gone, or on a disk that is not there now.
            _log.warning("the model of %s cannot be read: %s", engine.name, error.problem.sentence())
