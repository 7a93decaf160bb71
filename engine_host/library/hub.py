"""Read a model's config.json and file sizes from Hugging Face before any download.

Only `read` uses the network, and only when a person asked for it. `HF_ENDPOINT`, `HF_TOKEN` and
`HF_HUB_OFFLINE` mean the same as for the hub's own tools.
"""

import asyncio
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeGuard
from urllib.parse import quote

import httpx

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.keys.in_header import key_in_header
from engine_host.core.outside import answers, files, json_text
from engine_host.protocol.errors import Fix, Reason

ENDPOINT = "https://huggingface.co"
_NAME = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
_REVISION = re.compile(r"[\w./-]{1,120}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
# Consolidated copies of the weights, adapters and optimizer states lie beside them.
_WEIGHTS = re.compile(r"(?!consolidated|adapter_|optimizer|training_)[^/]+\.safetensors", re.IGNORECASE)
_TIMEOUT = httpx.Timeout(20, connect=10)
_LONGEST = 90.0
_MOST_REDIRECTS = 5
_MOST_BYTES = 16 << 20
_MOST_VALUES = 500_000
_LARGEST = 1 << 60
_TRUE = {"1", "true", "yes", "on"}


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
    return bool(_NAME.fullmatch(name)) and (not revision or bool(_REVISION.fullmatch(revision)))


class Hub:
    """Reads configs of models from the hub, and remembers them in a folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment

    @property
    def endpoint(self) -> str:
        """The base URL of the hub."""
        return (self._environment.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")

    def known(self, name: str) -> HubConfig | None:
        """Return the newest cached config of `organisation/model[@revision]`. Sends nothing."""
        repository, _, revision = name.partition("@")
        if not _NAME.fullmatch(repository):
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
        model, download_failed when the hub cannot be reached, model_file_damaged for a config that is none.
        """
        if not _NAME.fullmatch(repository) or not _REVISION.fullmatch(revision):
            raise HostError(
                Reason.BAD_REQUEST,
                f"{f'{repository}@{revision}'[:120]!r} is no name of a model on Hugging Face.",
                fix="Write it as organisation/model, such as Qwen/Qwen3-8B.",
            )
        if self._environment.get("HF_HUB_OFFLINE", "").lower() in _TRUE:
            raise HostError(
                Reason.DOWNLOAD_FAILED,
                "No request was sent: HF_HUB_OFFLINE is set.",
                cause="Whoever set it wants no request to leave this machine.",
                fix="Start the engine host without it, or give the path of a config.json.",
            )
        try:
            async with asyncio.timeout(_LONGEST), self._client() as client:
                found = await self._read(client, repository, revision)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError, ValueError, ImportError) as error:
            # A proxy or a token that cannot be used is found when the client is made.
            raise HostError(
                Reason.DOWNLOAD_FAILED,
                f"{self.endpoint} could not be reached; nothing of {repository} was read.",
                cause=f"{type(error).__name__}: {error}".rstrip(": ") + ".",
                fix="Check the network, a proxy (HTTPS_PROXY), HF_ENDPOINT and HF_TOKEN; a config.json on "
                "this machine does the same.",
                evidence={"address": self.endpoint},
            ) from error
        self._remember(found)
        return found

    def _client(self) -> httpx.AsyncClient:
        given = self._environment.get("HF_TOKEN", "").strip()
        token = key_in_header(given)
        if given and token is None:
            raise HostError(
                Reason.DOWNLOAD_FAILED,
                "HF_TOKEN holds no token, so nothing was asked of the hub.",
                cause="A token is one line of letters, digits and signs.",
                fix="Set it as the hub shows it, or unset it.",
            )
        headers = {"User-Agent": "sndr", **answers.UNCOMPRESSED}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.AsyncClient(timeout=_TIMEOUT, headers=headers)

    async def _read(self, client: httpx.AsyncClient, repository: str, revision: str) -> HubConfig:
        place = f"{self.endpoint}/{repository}/resolve/{quote(revision, safe='')}/config.json"
        content, commit = await self._get(client, place, repository, revision)
        config = _object(content, f"{repository}'s config.json")
        if not _COMMIT.fullmatch(commit):
            commit = revision
        info = f"{self.endpoint}/api/models/{repository}/revision/{quote(commit, safe='')}?blobs=true"
        listed, _ = await self._get(client, info, repository, revision)
        size = _weights(_object(listed, "the list of files"))
        return HubConfig(repository, commit, self.endpoint, time.time(), config, size)

    async def _get(
        self, client: httpx.AsyncClient, address: str, repository: str, revision: str
    ) -> tuple[bytes, str]:
        """Return the body and the commit that the answer names; bodies of redirects are not read."""
        request = client.build_request("GET", address)
        for _ in range(_MOST_REDIRECTS):
            answer = await client.send(request, stream=True)
            try:
                following = answer.next_request
                if following is None:
                    if not answer.is_success:
                        _refuse(answer, repository, revision, has_token="authorization" in client.headers)
                    return await answers.read(answer, _MOST_BYTES), answer.headers.get("X-Repo-Commit", "")
                if request.url.scheme == "https" != following.url.scheme:
                    raise httpx.UnsupportedProtocol(f"it leads to {following.url}, which is not encrypted")
                request = following
            finally:
                await answer.aclose()
        raise httpx.TooManyRedirects("it leads from one address to the next")

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


def _object(content: bytes, what: str) -> dict[str, Any]:
    try:
        found = json_text.parse(content, _MOST_VALUES, finite=False)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise HostError(
            Reason.MODEL_FILE_DAMAGED,
            f"{what} is not what it should be: no JSON object.",
            fix="Check HF_ENDPOINT: perhaps another program answers there.",
        )
    return found


def _weights(info: Mapping[str, Any]) -> int | None:
    files = info.get("siblings")
    sizes = [
        file.get("size")
        for file in (files if isinstance(files, list) else [])
        if isinstance(file, dict) and _WEIGHTS.fullmatch(str(file.get("rfilename", "")))
    ]
    known = [size for size in sizes if _is_size(size)]
    return sum(known) if known and len(known) == len(sizes) else None


def _refuse(answer: httpx.Response, repository: str, revision: str, *, has_token: bool) -> NoReturn:
    code = answer.headers.get("X-Error-Code", "")
    evidence = {"status": answer.status_code, "said": code, "address": str(answer.url)}
    page = f"{answer.url.scheme}://{answer.url.netloc.decode('ascii')}/{repository}"
    if code == "GatedRepo":
        raise HostError(
            Reason.UNAUTHORIZED,
            f"{repository} is gated: its licence has to be accepted first.",
            cause="The token that was sent may not read it." if has_token else "No token was sent.",
            fix=Fix(
                text=f"Accept the licence at {page}, then start the engine host with HF_TOKEN set.",
                command="HF_TOKEN=hf_… sndr serve",
            ),
            evidence=evidence,
        )
    if code == "EntryNotFound":
        raise HostError(
            Reason.NOT_FOUND,
            f"{repository} has no config.json at {revision}.",
            cause="A repository of GGUF files often has none.",
            fix="Name the repository of the original weights; a GGUF file can be read on this machine.",
            evidence=evidence,
        )
    if code == "RevisionNotFound":
        raise HostError(
            Reason.NOT_FOUND,
            f"{repository} has no revision {revision}.",
            fix="Leave the revision out to take the newest.",
            evidence=evidence,
        )
    if answer.status_code in (401, 403, 404):
        # Without a token the hub answers the same for what is private and for what does not exist.
        raise HostError(
            Reason.NOT_FOUND if answer.status_code == 404 or not has_token else Reason.UNAUTHORIZED,
            f"There is no public model {repository} on Hugging Face.",
            cause="The name is wrong, or the model is private.",
            fix="Check the name; for a private model start the engine host with HF_TOKEN set.",
            evidence=evidence,
        )
    raise HostError(
        Reason.DOWNLOAD_FAILED,
        f"Hugging Face answered with status {answer.status_code}; nothing of {repository} was read.",
        cause="It asks for fewer requests." if answer.status_code == 429 else "",
        fix="Try again in a minute.",
        evidence=evidence,
    )
