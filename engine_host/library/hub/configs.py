"""Read a model's config.json and file sizes from Hugging Face before any download.

Only `read` uses the network, and only when a person asked for it.
"""

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import quote

import httpx

from engine_host.core import atomic_file
from engine_host.core.outside import files, json_text
from engine_host.library.hub.requests import COMMIT, NAME, REVISION, HubRequests, object_of
from engine_host.protocol.language import tr

# Consolidated copies of the weights, adapters and optimizer states lie beside them.
WEIGHTS = re.compile(r"(?!consolidated|adapter_|optimizer|training_)[^/]+\.safetensors", re.IGNORECASE)
_MOST_BYTES = 16 << 20
_LARGEST = 1 << 60


@dataclass(frozen=True, slots=True)
class HubConfig:
    """A model's config at one commit; `size` is of its weights in bytes, None where the hub does not say."""

    repository: str
    revision: str
    endpoint: str
    read_at: float
    config: Mapping[str, Any]
    size: int | None

    @property
    def name(self) -> str:
        """The model at this commit."""
        return f"{self.repository}@{self.revision}"


def is_name(text: str) -> bool:
    """Return True if a text can be `organisation/model`, with or without `@revision`."""
    name, _, revision = text.partition("@")
    return bool(NAME.fullmatch(name)) and (not revision or bool(REVISION.fullmatch(revision)))


class Hub:
    """Reads configs of models from the hub, and remembers them in a folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._requests = HubRequests(environment)

    @property
    def endpoint(self) -> str:
        """The base URL of the hub."""
        return self._requests.endpoint

    def known(self, name: str) -> HubConfig | None:
        """Return the newest cached config of `organisation/model[@revision]`. Sends nothing."""
        repository, _, revision = name.partition("@")
        if not NAME.fullmatch(repository):
            return None
        fitting = (
            one
            for one in self._remembered(self._place(repository))
            if one.repository == repository and (not revision or one.revision.startswith(revision))
        )
        return max(fitting, key=lambda one: one.read_at, default=None)

    def all_known(self) -> tuple[HubConfig, ...]:
        """Everything that was read before, newest first."""
        folders = sorted(self._folder.iterdir()) if self._folder.is_dir() else []
        found = [one for folder in folders for one in self._remembered(folder)]
        return tuple(sorted(found, key=lambda one: -one.read_at))

    async def read(self, repository: str, revision: str = "main") -> HubConfig:
        """Ask the hub: two requests, for config.json and for the list of files with their sizes.

        Raises HostError: bad_request for what is no name, not_found, unauthorized for a gated or private
        model, rate_limited, offline and download_failed when the hub cannot be reached or breaks off,
        model_file_damaged for a config that is none.
        """
        self._requests.check(repository, revision)
        async with self._requests.asking(
            tr("nothing of {repository} was read", repository=repository)
        ) as client:
            found = await self._read(client, repository, revision)
        self._remember(found)
        return found

    async def _read(self, client: httpx.AsyncClient, repository: str, revision: str) -> HubConfig:
        get, endpoint = self._requests.get, self.endpoint
        place = f"{endpoint}/{repository}/resolve/{quote(revision, safe='')}/config.json"
        content, commit = await get(client, place, repository, revision)
        config = object_of(content, tr("{repository}'s config.json", repository=repository))
        if not COMMIT.fullmatch(commit):
            commit = revision
        info = f"{endpoint}/api/models/{repository}/revision/{quote(commit, safe='')}?blobs=true"
        listed, _ = await get(client, info, repository, revision)
        size = _weights(object_of(listed, tr("the list of files")))
        return HubConfig(repository, commit, endpoint, time.time(), config, size)

    def _place(self, repository: str) -> Path:
        return self._folder / repository.replace("/", "--")

    def _remember(self, found: HubConfig) -> None:
        written = {
            "repository": found.repository,
            "revision": found.revision,
            "endpoint": found.endpoint,
            "read_at": found.read_at,
            "size": found.size,
            "config": found.config,
        }
        name = found.revision.replace("/", "--")
        atomic_file.write(self._place(found.repository) / f"{name}.json", json.dumps(written), 0o644)

    def _remembered(self, folder: Path) -> list[HubConfig]:
        found = []
        for path in sorted(folder.glob("*.json")):
            try:
                found.append(_known(json_text.parse_object(files.read(path, _MOST_BYTES), finite=False)))
            except (OSError, ValueError):
                continue  # Of another version of this program, or half deleted: it can be read again.
        return found


def _known(written: Mapping[str, Any]) -> HubConfig:
    """A config as it was remembered. Raises ValueError for what no version of this program wrote."""
    names = [written.get(name) for name in ("repository", "revision", "endpoint")]
    at, config, size = (written.get(name) for name in ("read_at", "config", "size"))
    if not all(isinstance(name, str) for name in names) or not isinstance(config, dict):
        raise ValueError("it is no remembered config")
    if not isinstance(at, int | float) or not math.isfinite(at) or not (size is None or _is_size(size)):
        raise ValueError("it is no remembered config")
    return HubConfig(str(names[0]), str(names[1]), str(names[2]), float(at), config, size)


def _is_size(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value < _LARGEST


def _weights(info: Mapping[str, Any]) -> int | None:
    files = info.get("siblings")
    sizes = [
        file.get("size")
        for file in (files if isinstance(files, list) else [])
        if isinstance(file, dict) and WEIGHTS.fullmatch(str(file.get("rfilename", "")))
    ]
    known = [size for size in sizes if _is_size(size)]
    return sum(known) if known and len(known) == len(sizes) else None
