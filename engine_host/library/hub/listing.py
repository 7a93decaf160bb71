"""Search for models on the hub, and list the files of one at one commit."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, urlencode

from engine_host.core.errors import HostError
from engine_host.core.visible import visible
from engine_host.library.hub.requests import COMMIT, NAME, HubRequests, object_of, value
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_SHA256 = re.compile(r"[0-9a-f]{64}")
_GIT = re.compile(r"[0-9a-f]{40}")
_LARGEST = 1 << 60
_LONGEST_NAME = 400
_LONGEST_PART = 200
_MOST_FILES = 20_000
_LONGEST_QUERY = 200
MOST_FOUND = 50


@dataclass(frozen=True, slots=True)
class FoundOnHub:
    """A model that a search found; counts are None where the hub does not say."""

    repository: str
    downloads: int | None
    likes: int | None
    gguf: bool
    safetensors: bool
    gated: bool
    updated: str


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository: bytes, and the hash that its content has to have, where the hub tells one.

    `sha256` is of large files; `git_id` is git's own hash (SHA-1) of the others.
    """

    name: str
    size: int
    sha256: str | None
    git_id: str | None

    @property
    def hash(self) -> str | None:
        """The hash that its content is called by."""
        return self.sha256 or self.git_id


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a repository at one commit."""

    repository: str
    commit: str
    files: tuple[HubFile, ...]
    gated: bool
    licence: str | None


async def search(requests: HubRequests, words: str, limit: int) -> tuple[FoundOnHub, ...]:
    """Return the models that the hub finds for some words, the most downloaded first. Raises HostError."""
    asked = urlencode(
        {
            "search": words.strip()[:_LONGEST_QUERY],
            "limit": min(limit, MOST_FOUND),
            "sort": "downloads",
            "direction": -1,
        }
    )
    async with requests.asking(tr("nothing was searched for")) as client:
        content, _ = await requests.get(client, f"{requests.endpoint}/api/models?{asked}", "the search")
    answer = value(content, tr("The answer to the search"))
    rows = answer if isinstance(answer, list) else []
    return tuple(one for row in rows[:MOST_FOUND] if (one := _found(row)) is not None)


async def list_files(requests: HubRequests, repository: str, revision: str) -> Listing:
    """Return the files of a repository at the commit that a revision is now.

    Raises HostError: bad_request, not_found, unauthorized, rate_limited, offline, download_failed,
    model_file_damaged for an answer that is none.
    """
    requests.check(repository, revision)
    address = f"{requests.endpoint}/api/models/{repository}/revision/{quote(revision, safe='')}?blobs=true"
    async with requests.asking(tr("nothing of {repository} was read", repository=repository)) as client:
        content, _ = await requests.get(client, address, repository, revision)
    answer = object_of(content, tr("The list of files of {repository}", repository=repository))
    commit = answer.get("sha")
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
        raise HostError(
            Reason.MODEL_FILE_DAMAGED,
            tr(
                "The hub does not say which commit {repository}@{revision} is, so nothing can be pinned.",
                repository=repository,
                revision=revision,
            ),
            cause="Perhaps another program answers in the hub's place: a mirror, a proxy, a page to log in.",
            fix="Check HF_ENDPOINT.",
        )
    if COMMIT.fullmatch(revision) and commit != revision:
        raise HostError(
            Reason.CONFLICT,
            tr(
                "The hub answered for another commit of {repository} than the one that was asked for.",
                repository=repository,
            ),
            cause=tr("Asked was {revision}, answered {commit}.", revision=revision[:12], commit=commit[:12]),
            fix="List its files again, and choose from what is there now.",
            evidence={"wanted": revision, "found": commit},
        )
    card = answer.get("cardData")
    licence = card.get("license") if isinstance(card, dict) else None
    return Listing(
        repository,
        commit,
        tuple(sorted(_files(answer.get("siblings")), key=lambda file: file.name)),
        answer.get("gated") not in (None, False),
        visible(licence[:100]) if isinstance(licence, str) else None,
    )


def is_safe(name: str) -> bool:
    """Tell whether a file's name stays inside its folder, on every system, and can be shown."""
    parts = PurePosixPath(name).parts
    return (
        0 < len(name) <= _LONGEST_NAME
        and name.isprintable()
        and not name.startswith("/")
        and not set(name) & set('\\:*?"<>|')
        and "/".join(parts) == name
        and all(part not in {".", ".."} and len(part.encode()) <= _LONGEST_PART for part in parts)
        # Names of the cache itself, and of what is hidden.
        and not any(part.startswith(".") or part.endswith((".", " ", ".incomplete")) for part in parts)
    )


def _files(rows: object) -> Iterator[HubFile]:
    seen: set[str] = set()
    for row in (rows if isinstance(rows, list) else [])[:_MOST_FILES]:
        if not isinstance(row, dict):
            continue
        name, lfs = row.get("rfilename"), row.get("lfs")
        large: Mapping[str, Any] = lfs if isinstance(lfs, dict) else {}
        size = large.get("size", row.get("size"))
        if not isinstance(name, str) or not is_safe(name) or name.lower() in seen or not _is_size(size):
            continue
        # Two names that differ in case alone are one file on some systems.
        seen.add(name.lower())
        yield HubFile(
            name, size, _hash(large.get("sha256"), _SHA256), None if large else _hash(row.get("blobId"), _GIT)
        )


def _found(row: object) -> FoundOnHub | None:
    if not isinstance(row, dict):
        return None
    name = row.get("id", row.get("modelId"))
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return None
    tags = row.get("tags")
    said = {tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set()
    updated = row.get("lastModified", row.get("createdAt"))
    return FoundOnHub(
        name,
        _count(row.get("downloads")),
        _count(row.get("likes")),
        "gguf" in said,
        "safetensors" in said,
        row.get("gated") not in (None, False),
        visible(updated[:10]) if isinstance(updated, str) else "",
    )


def _count(number: object) -> int | None:
    return number if type(number) is int and 0 <= number < _LARGEST else None


def _is_size(number: object) -> bool:
    return type(number) is int and 0 <= number < _LARGEST


def _hash(text: object, form: re.Pattern[str]) -> str | None:
    return text if isinstance(text, str) and form.fullmatch(text) else None
