"""Files of a FAKE hub on real sockets: resumed, checked, and put where every program finds them."""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.library.file_hashes import Hashes
from engine_host.library.hub.cache import RepositoryCache, cache_folder, hash_in_name
from engine_host.library.hub.fetching import Fetched, FileFetcher, Patience
from engine_host.library.hub.listing import HubFile, list_files
from engine_host.library.hub.requests import HubRequests
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import run, until
from tests.unit.library.hub.hub_server import COMMIT, HubServer, Served, git_id, hub_server

NAME = "org/name"
CONTENT = os.urandom(299_999) + b"."
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_server() as made:
        made.repositories[NAME] = Served({"m.gguf": CONTENT, "config.json": b"{}"})
        yield made


def unknown(_path: Path) -> Hashes | None:
    return None


async def fetch(
    hub: HubServer,
    root: Path,
    name: str = "m.gguf",
    *,
    file: HubFile | None = None,
    stall: float = 30,
    told: list[int] | None = None,
    **environment: str,
) -> Fetched:
    requests = HubRequests({"HF_ENDPOINT": hub.endpoint, **environment})
    if file is None:
        listing = await list_files(requests, NAME, "main")
        file = next(one for one in listing.files if one.name == name)
    async with requests.asking("nothing was fetched") as client:
        work = FileFetcher(
            requests, client, RepositoryCache(root, NAME), NAME, COMMIT, Patience(stall, (0.0, 0.0))
        )
        return await work.fetch(file, unknown, (told if told is not None else []).append, lambda _: None)


def refused(hub: HubServer, root: Path, **options: object) -> HostError:
    with pytest.raises(HostError) as caught:
        run(fetch(hub, root, **options))  # type: ignore[arg-type]
    assert caught.value.problem.fix is not None
    return caught.value


def part(root: Path) -> Path:
    return RepositoryCache(root, NAME).part(SHA)


def blob(root: Path) -> Path:
    return RepositoryCache(root, NAME).blob(SHA)


def test_a_file_is_fetched_and_its_hash_is_right(hub: HubServer, tmp_path: Path) -> None:
    told: list[int] = []
    done = run(fetch(hub, tmp_path, told=told))
    assert (done.blob, done.verified, done.carried) == (SHA, True, len(CONTENT))
    assert blob(tmp_path).read_bytes() == CONTENT
    assert told[-1] == len(CONTENT)
    assert not part(tmp_path).exists()
    assert hash_in_name(blob(tmp_path)) == SHA


def test_a_small_file_is_checked_by_the_hash_of_git(hub: HubServer, tmp_path: Path) -> None:
    done = run(fetch(hub, tmp_path, "config.json"))
    assert (done.blob, done.verified) == (git_id(b"{}"), True)


def test_it_goes_on_where_the_line_broke(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories[NAME].breaks = [100_000, 150_000]
    assert run(fetch(hub, tmp_path)).carried == len(CONTENT)
    assert hub.elsewhere is not None
    ranges = [headers.get("range") for _path, headers in hub.elsewhere.requests]
    assert ranges == [None, "bytes=100000-", "bytes=250000-"]


def test_a_part_of_an_earlier_try_is_gone_on_with(hub: HubServer, tmp_path: Path) -> None:
    part(tmp_path).parent.mkdir(parents=True)
    part(tmp_path).write_bytes(CONTENT[:123_456])
    done = run(fetch(hub, tmp_path))
    assert done.carried == len(CONTENT) - 123_456
    assert blob(tmp_path).read_bytes() == CONTENT


def test_a_server_that_cannot_go_on_begins_again(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories[NAME].ranges = False
    part(tmp_path).parent.mkdir(parents=True)
    part(tmp_path).write_bytes(CONTENT[:1000])
    assert run(fetch(hub, tmp_path)).carried == len(CONTENT)
    assert blob(tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_too_long_begins_again(hub: HubServer, tmp_path: Path) -> None:
    part(tmp_path).parent.mkdir(parents=True)
    part(tmp_path).write_bytes(CONTENT + b"more")
    run(fetch(hub, tmp_path))
    assert blob(tmp_path).read_bytes() == CONTENT


def test_a_pause_keeps_what_came(hub: HubServer, tmp_path: Path) -> None:
    elsewhere = hub.elsewhere
    assert elsewhere is not None
    elsewhere.trickles = True
    content = os.urandom(3 << 20)
    sha = hashlib.sha256(content).hexdigest()
    hub.repositories[NAME] = Served({"m.gguf": content}, breaks=[2 << 20])

    async def paused() -> int:
        task = asyncio.create_task(fetch(hub, tmp_path))
        place = RepositoryCache(tmp_path, NAME).part(sha)
        await asyncio.to_thread(elsewhere.waiting.wait)
        await until(lambda: place.exists() and place.stat().st_size >= 1 << 20)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return place.stat().st_size

    kept = run(paused())
    elsewhere.going.set()
    elsewhere.trickles = False
    assert run(fetch(hub, tmp_path)).carried == len(content) - kept


@pytest.mark.parametrize("wrong", [bytes(len(CONTENT)), CONTENT[:-1] + b"!"])
def test_a_content_with_another_hash_is_removed(hub: HubServer, tmp_path: Path, wrong: bytes) -> None:
    hub.repositories[NAME].sent["m.gguf"] = wrong
    assert refused(hub, tmp_path).reason is Reason.VERIFICATION_FAILED
    assert not part(tmp_path).exists()
    assert not blob(tmp_path).exists()


def test_no_more_is_taken_than_the_file_has(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories[NAME].sent["m.gguf"] = CONTENT + bytes(5 << 20)
    assert run(fetch(hub, tmp_path)).carried == len(CONTENT)


def test_less_than_it_should_have_is_said_and_kept(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories[NAME].sent["m.gguf"] = CONTENT[:200_000]
    error = refused(hub, tmp_path)
    assert error.reason is Reason.DOWNLOAD_FAILED
    assert part(tmp_path).stat().st_size == 200_000


def test_who_sends_byte_by_byte_is_not_waited_for(hub: HubServer, tmp_path: Path) -> None:
    assert hub.elsewhere is not None
    hub.elsewhere.trickles = True
    hub.repositories[NAME].breaks = [10] * 9
    assert refused(hub, tmp_path, stall=0.1).reason is Reason.DOWNLOAD_FAILED


def test_the_token_stays_with_the_hub(hub: HubServer, tmp_path: Path) -> None:
    run(fetch(hub, tmp_path, HF_TOKEN="hf_secret"))
    assert hub.elsewhere is not None
    assert all(headers["authorization"] == "Bearer hf_secret" for _path, headers in hub.requests)
    assert hub.elsewhere.requests
    assert all("authorization" not in headers for _path, headers in hub.elsewhere.requests)


def test_a_content_that_is_here_is_checked_and_not_fetched(hub: HubServer, tmp_path: Path) -> None:
    run(fetch(hub, tmp_path))
    assert hub.elsewhere is not None
    hub.elsewhere.requests.clear()
    assert run(fetch(hub, tmp_path)).carried == 0
    assert hub.elsewhere.requests == []
    blob(tmp_path).write_bytes(bytes(len(CONTENT)))
    assert run(fetch(hub, tmp_path)).carried == len(CONTENT)
    assert blob(tmp_path).read_bytes() == CONTENT


def test_without_a_hash_it_is_not_called_verified(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories[NAME].rows = [{"rfilename": "m.gguf", "size": len(CONTENT)}]
    done = run(fetch(hub, tmp_path))
    assert (done.blob, done.verified) == (SHA, False)
    assert blob(tmp_path).read_bytes() == CONTENT


def test_another_commit_is_said(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories[NAME].commit_of_files = "f" * 40
    error = refused(hub, tmp_path)
    assert error.reason is Reason.CONFLICT
    assert "changed" in error.problem.message


def test_another_program_that_fetches_it_is_left_alone(hub: HubServer, tmp_path: Path) -> None:
    lock = tmp_path / ".locks" / "models--org--name" / f"{SHA}.lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert refused(hub, tmp_path).reason is Reason.CONFLICT


@pytest.mark.parametrize(
    ("number", "reason"), [(errno.ENOSPC, Reason.DISK_FULL), (errno.EACCES, Reason.NOT_WRITABLE)]
)
def test_a_disk_that_refuses_is_said_and_what_came_stays(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: Reason
) -> None:
    def full(_handle: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", full)
    assert refused(hub, tmp_path).reason is reason
    assert part(tmp_path).stat().st_size == len(CONTENT)


def test_a_link_in_place_of_a_part_is_not_followed(hub: HubServer, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    part(tmp_path).parent.mkdir(parents=True)
    part(tmp_path).symlink_to(other)
    assert refused(hub, tmp_path).reason is Reason.NOT_WRITABLE
    assert other.read_text() == "mine"


def test_published_files_have_their_names(hub: HubServer, tmp_path: Path) -> None:
    run(fetch(hub, tmp_path))
    cache = RepositoryCache(tmp_path, NAME)
    for _again in range(2):
        cache.publish(COMMIT, "main", {"deep/m.gguf": SHA})
    assert (cache.snapshot(COMMIT) / "deep" / "m.gguf").read_bytes() == CONTENT
    assert (cache.folder / "refs" / "main").read_text() == COMMIT
    assert sorted(one.name for one in (cache.snapshot(COMMIT) / "deep").iterdir()) == ["m.gguf"]


def test_the_folder_is_that_of_the_hubs_own_tools(tmp_path: Path) -> None:
    assert cache_folder({}, tmp_path) == tmp_path / ".cache" / "huggingface" / "hub"
    assert cache_folder({"HF_HOME": "/x"}) == Path("/x/hub")
    assert cache_folder({"HF_HOME": "/x", "HF_HUB_CACHE": "/y"}) == Path("/y")
    assert cache_folder({"XDG_CACHE_HOME": "/z"}) == Path("/z/huggingface/hub")
