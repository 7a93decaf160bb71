"""Requests to the hub: its address, its token, redirects, and what its refusals mean.

`HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE` and `TRANSFORMERS_OFFLINE` mean the same as for the hub's own
tools; httpx reads the variables of proxies.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, NoReturn

import httpx

from engine_host.core.addresses import is_loopback
from engine_host.core.errors import HostError
from engine_host.core.keys.in_header import key_in_header
from engine_host.core.likely_causes import busy_hub
from engine_host.core.outside import answers, json_text
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

ENDPOINT = "https://huggingface.co"
NAME = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
REVISION = re.compile(r"[\w./-]{1,120}", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
_TIMEOUT = httpx.Timeout(20, connect=10)
_LONGEST = 90.0
_MOST_REDIRECTS = 5
_MOST_BYTES = 16 << 20
_MOST_VALUES = 500_000
_TRUE = {"1", "true", "yes", "on"}
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
# A password may hold what ends a host elsewhere: all until the last sign of it counts.
_USER = re.compile(r"((?:[a-z][a-z0-9+.-]*:)?//)?.*@", re.IGNORECASE | re.DOTALL)


class HubRequests:
    """Asks the hub; every answer is bounded, and nothing of it is believed."""

    def __init__(self, environment: Mapping[str, str], longest: float = _LONGEST) -> None:
        """`longest` is how many seconds one answer, which is no file, may take."""
        self._environment = environment
        self._longest = longest

    @property
    def endpoint(self) -> str:
        """The base URL of the hub, without a user and a password."""
        return _USER.sub(r"\1", self._environment.get("HF_ENDPOINT") or ENDPOINT, count=1).rstrip("/")

    @property
    def offline(self) -> bool:
        """Tell whether somebody wants no request to leave this machine."""
        return self._offline_by is not None

    @property
    def _offline_by(self) -> str | None:
        set_to = ((name, self._environment.get(name, "")) for name in _OFFLINE)
        return next((name for name, text in set_to if text.strip().lower() in _TRUE), None)

    @property
    def has_token(self) -> bool:
        """Tell whether a token is sent along."""
        return self._carries_secrets and key_in_header(self._environment.get("HF_TOKEN", "")) is not None

    @property
    def _carries_secrets(self) -> bool:
        try:
            address = httpx.URL(self.endpoint)
        except (httpx.InvalidURL, ValueError):
            return False
        return address.scheme == "https" or (address.scheme == "http" and is_loopback(address.host))

    def check(self, repository: str, revision: str = "main") -> None:
        """Raise HostError(bad_request) for what is no name of a model."""
        places = {"", ".", ".."} & set(revision.split("/"))
        if not NAME.fullmatch(repository) or not REVISION.fullmatch(revision) or places:
            raise HostError(
                Reason.BAD_REQUEST,
                tr(
                    "{value} is no name of a model on Hugging Face.",
                    value=repr(f"{repository}@{revision}"[:120]),
                ),
                fix="Write it as organisation/model, such as Qwen/Qwen3-8B.",
            )

    @contextlib.asynccontextmanager
    async def asking(self, doing: str) -> AsyncIterator[httpx.AsyncClient]:
        """Give a client; `doing` is what was not done where it fails, such as "nothing was read".

        Raises HostError: offline where nothing leaves this machine or the hub cannot be reached,
        download_failed for every other failure of a request.
        """
        if self.offline:
            raise HostError(
                Reason.OFFLINE,
                tr("No request was sent: {offline_by} is set.", offline_by=self._offline_by),
                cause="Whoever set it wants no request to leave this machine.",
                fix="Models that are here work as before. To ask the hub, start the engine host without it.",
            )
        with self._failures(doing):
            async with self._client() as client:
                yield client

    @contextlib.contextmanager
    def _failures(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError, ValueError, ImportError) as error:
            # A proxy or a token that cannot be used is found when the client is made.
            away = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise HostError(
                Reason.OFFLINE if away else Reason.DOWNLOAD_FAILED,
                tr("{endpoint} could not be reached; {doing}.", endpoint=self.endpoint, doing=doing),
                cause=f"{type(error).__name__}: {error}".rstrip(": ") + ".",
                fix="Check the network, a proxy (HTTPS_PROXY), HF_ENDPOINT and HF_TOKEN; what is on this "
                "machine works without it.",
                evidence={"address": self.endpoint},
            ) from error

    def _client(self) -> httpx.AsyncClient:
        if "@" in self._environment.get("HF_ENDPOINT", ""):
            raise HostError(
                Reason.DOWNLOAD_FAILED,
                "HF_ENDPOINT holds a password.",
                cause="An address is shown and kept, so nothing was asked of the hub.",
                fix="Set it to the address alone, and HF_TOKEN to the token.",
            )
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
        if token and self._carries_secrets:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.AsyncClient(timeout=_TIMEOUT, headers=headers)

    async def get(
        self, client: httpx.AsyncClient, address: str, repository: str, revision: str = "main"
    ) -> tuple[bytes, str]:
        """Return the body and the commit that the answer names."""
        async with (
            asyncio.timeout(self._longest),
            self.open(client, address, repository, revision) as (answer, commit),
        ):
            return await answers.read(answer, _MOST_BYTES), commit

    @contextlib.asynccontextmanager
    async def open(
        self,
        client: httpx.AsyncClient,
        address: str,
        repository: str,
        revision: str,
        headers: Mapping[str, str] | None = None,
        taken: frozenset[int] = frozenset(),
    ) -> AsyncIterator[tuple[httpx.Response, str]]:
        """Give the answer that redirects end at, and the commit that the hub names.

        Bodies of redirects are not read. The token goes to the hub's own origin alone. `taken` are statuses
        beside success that the caller looks at itself. Raises HostError for a refusal.
        """
        request = client.build_request("GET", address, headers=dict(headers or {}))
        own, commit = request.url.netloc, ""
        for _ in range(_MOST_REDIRECTS):
            answer = await client.send(request, stream=True)
            try:
                if request.url.netloc == own:
                    commit = answer.headers.get("X-Repo-Commit", commit)
                following = answer.next_request
                if following is None:
                    if not answer.is_success and answer.status_code not in taken:
                        refuse(answer, repository, revision, has_token=self.has_token)
                    yield answer, commit
                    return
                if request.url.scheme == "https" != following.url.scheme:
                    # The rest of such an address is often a signature that opens the file.
                    there = f"{following.url.scheme}://{following.url.host}"
                    raise httpx.UnsupportedProtocol(f"it leads to {there}, which is not encrypted")
                request = following
            finally:
                await answer.aclose()
        raise httpx.TooManyRedirects("it leads from one address to the next")


def value(content: bytes, what: str) -> Any:
    """Return the value of an answer, an object or a list. Raises HostError(model_file_damaged)."""
    try:
        found = json_text.parse(content, _MOST_VALUES, finite=False)
    except ValueError:
        found = None
    if not isinstance(found, dict | list):
        raise _damaged(what)
    return found


def object_of(content: bytes, what: str) -> dict[str, Any]:
    """Return the object of an answer. Raises HostError(model_file_damaged)."""
    found = value(content, what)
    if not isinstance(found, dict):
        raise _damaged(what)
    return found


def _damaged(what: str) -> HostError:
    return HostError(
        Reason.MODEL_FILE_DAMAGED,
        tr("{what} is not what it should be: no JSON object.", what=what),
        cause="Perhaps another program answers in the hub's place: a mirror, a proxy, a page to log in.",
        fix="Check HF_ENDPOINT.",
    )


def refuse(answer: httpx.Response, repository: str, revision: str, *, has_token: bool) -> NoReturn:
    """Raise the HostError that a refusal of the hub means."""
    code = answer.headers.get("X-Error-Code", "")
    evidence = {"status": answer.status_code, "said": code, "address": str(answer.url.copy_with(query=None))}
    page = f"{answer.url.scheme}://{answer.url.netloc.decode('ascii')}/{repository}"
    if code == "GatedRepo":
        raise HostError(
            Reason.UNAUTHORIZED,
            tr("{repository} is gated: its licence has to be accepted first.", repository=repository),
            cause="The token that was sent may not read it." if has_token else "No token was sent.",
            fix=Fix(
                text=tr(
                    "Accept the licence at {page}, then start the engine host with HF_TOKEN set.", page=page
                ),
                command="HF_TOKEN=hf_… sndr serve",
            ),
            evidence={**evidence, "page": page},
        )
    if code == "EntryNotFound":
        name = answer.url.path.rpartition("/")[2]
        raise HostError(
            Reason.NOT_FOUND,
            tr(
                "{repository} has no {name} at {revision}.",
                repository=repository,
                name=name,
                revision=revision,
            ),
            cause="A repository of GGUF files often has none." if name == "config.json" else "",
            fix="Name the repository of the original weights; a GGUF file can be read on this machine."
            if name == "config.json"
            else "List its files again.",
            evidence=evidence,
        )
    if code == "RevisionNotFound":
        raise HostError(
            Reason.NOT_FOUND,
            tr("{repository} has no revision {revision}.", repository=repository, revision=revision),
            cause="It was never there, or was removed since.",
            fix="Leave the revision out to take the newest.",
            evidence=evidence,
        )
    if answer.status_code == 429:
        waits = answer.headers.get("Retry-After", "")
        seconds = int(waits) if waits.isascii() and waits.isdecimal() and len(waits) < 6 else None
        raise HostError(
            Reason.RATE_LIMITED,
            "Hugging Face asks for fewer requests (status 429).",
            cause="" if has_token else "No token was sent; with one it allows more.",
            fix=tr("Try again in {seconds} seconds.", seconds=seconds)
            if seconds
            else "Try again in a minute.",
            evidence={**evidence, "seconds": seconds},
        )
    if answer.status_code in (401, 403, 404):
        # Without a token the hub answers the same for what is private and for what does not exist.
        raise HostError(
            Reason.NOT_FOUND if answer.status_code == 404 or not has_token else Reason.UNAUTHORIZED,
            tr("There is no public model {repository} on Hugging Face.", repository=repository),
            cause="The name is wrong, or the model is private.",
            fix="Check the name; for a private model start the engine host with HF_TOKEN set.",
            evidence=evidence,
        )
    raise HostError(
        Reason.DOWNLOAD_FAILED,
        tr(
            "Hugging Face answered with status {status_code} about {repository}.",
            status_code=answer.status_code,
            repository=repository,
        ),
        cause=busy_hub(),
        fix="Try again in a minute.",
        evidence=evidence,
    )
