"""The port to which the endpoint gave way once, so that it stays where clients were told to ask."""

import contextlib
import json
import logging
from collections.abc import Callable
from pathlib import Path

from engine_host.core import atomic_file
from engine_host.core.errors import HostError

_log = logging.getLogger(__name__)


class MovedPort:
    """A file with the port that was wanted and the one that was free; of no weight where the user set one."""

    def __init__(self, path: Path, is_set: Callable[[], bool]) -> None:
        self._path = path
        self._is_set = is_set

    def of(self, wanted: int) -> int | None:
        """Return the port that was taken instead of a wanted one; None where there is none, or one is set."""
        if self._is_set():
            return None
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            kept = json.loads(self._path.read_bytes()[:1000])
            port = kept["port"]
            if kept["wanted"] == wanted and type(port) is int and 0 < port < 65536:
                return port
        return None

    def keep(self, wanted: int, port: int) -> bool:
        """Keep the port for the next starts; False where the user set one, or the disk refuses."""
        if self._is_set():
            return False
        try:
            atomic_file.write(self._path, json.dumps({"wanted": wanted, "port": port}))
        except HostError as error:
            _log.warning("The endpoint's port could not be kept: %s", error)
            return False
        return True
