"""Downloads from a FAKE hub: whole, verified, listed; paused, gone on with, refused, offline."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.store import Store
from engine_host.library.hub.cache import RepositoryCache
from engine_host.library.hub.fetching import Patience
from engine_host.library.hub.listing import HubFile
from engine_host.operations.library.downloads import command_of
from engine_host.operations.library.unfinished import UnfinishedDownloads
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobState
from engine_host.protocol.library import DownloadedModel, DownloadModel, HubFilesQuery, HubQuery
from tests.unit.asynchronous import run, until
from tests.unit.library.hub.hub_server import COMMIT, HubServer, Served, hub_server
from tests.unit.library.test_gguf import gguf
from tests.unit.operations.library.shelves import shelf

NAME = "org/demo-GGUF"
GGUF = gguf()
FILES = {"demo-Q8_0.gguf": GGUF, "mmproj-F16.gguf": b"x" * 500, "README.md": b"x"}
ASKED = DownloadModel(repository=NAME, choice="demo-Q8_0.gguf")


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_server() as made:
        made.repositories[NAME] = Served(dict(FILES))
        yield made


def test_a_model_is_downloaded_verified_and_listed(hub: HubServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(hub, tmp_path) as opened:
            found = await opened.downloads.files(HubFilesQuery(repository=NAME))
            (choice,) = found.choices
            assert (found.commit, choice.label, choice.size, choice.here) == (COMMIT, "Q8_0", len(GGUF), 0)
            assert [one.kind for one in choice.companions] == ["mmproj"]
            asked = ASKED.model_copy(
                update={"revision": COMMIT, "named": "main", "companions": ("mmproj-F16.gguf",)}
            )
            job = await opened.download(asked)
            assert job.state is JobState.DONE, job.error
            done = DownloadedModel.model_validate(job.result)
            assert (done.verified, done.carried) == (True, len(GGUF) + 500)
            (model,) = (await opened.models.page()).models
            assert (model.id, model.verified, model.repository) == (done.listed_as, True, NAME)
            assert [Path(one).name for one in model.companions] == ["mmproj-F16.gguf"]
            assert await asyncio.to_thread(Path(model.path).read_bytes) == GGUF
            assert (opened.cache / "models--org--demo-GGUF" / "refs" / "main").read_text() == COMMIT
            (again,) = (await opened.downloads.files(HubFilesQuery(repository=NAME))).choices
            assert (again.model, again.here) == (model.id, len(GGUF))
            assert (await opened.shelf.page()).downloads == ()

    run(work())


def test_nothing_is_asked_before_somebody_asks(hub: HubServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(hub, tmp_path) as opened:
            await opened.shelf.page()
            await opened.models.scan()

    run(work())
    assert hub.requests == []


def test_a_label_means_its_files(hub: HubServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(hub, tmp_path) as opened:
            job = await opened.download(ASKED.model_copy(update={"choice": "q8_0"}))
            assert job.state is JobState.DONE
            job = await opened.download(ASKED.model_copy(update={"choice": "Q2_K"}))
            assert job.error is not None
            assert job.error.reason is Reason.NOT_FOUND
            assert "Q8_0" in job.error.cause
            job = await opened.download(ASKED.model_copy(update={"companions": ("../x",)}))
            assert job.error is not None
            assert job.error.reason is Reason.NOT_FOUND

    run(work())


def test_a_pause_is_kept_and_gone_on_with_after_a_restart(hub: HubServer, tmp_path: Path) -> None:
    elsewhere = hub.elsewhere
    assert elsewhere is not None
    elsewhere.trickles = True
    hub.repositories[NAME].breaks = [len(GGUF) // 2]

    async def pause() -> None:
        async with shelf(hub, tmp_path) as opened:
            job = opened.downloads.download(ASKED)
            await until(lambda: any(opened.cache.rglob("*.incomplete")))
            (one,) = (await opened.shelf.page()).downloads
            assert one.job == job.id
            with pytest.raises(HostError) as caught:
                await opened.shelf.discard(one.id)
            assert caught.value.reason is Reason.CONFLICT
            opened.jobs.cancel(job.id)
            ended = await opened.jobs.ended(job.id)
            assert ended.state is JobState.CANCELLED
            assert "goes on" in ended.left
            assert (await opened.models.page()).models == ()

    run(pause())
    elsewhere.going.set()
    elsewhere.trickles = False

    async def go_on() -> None:
        async with shelf(hub, tmp_path) as opened:
            (one,) = (await opened.shelf.page()).downloads
            assert (one.job, one.asked.revision, one.asked.named) == (None, COMMIT, "main")
            assert one.command == f"sndr models download {NAME} --revision {COMMIT} --choice demo-Q8_0.gguf"
            job = await opened.download(one.asked)
            assert job.state is JobState.DONE, job.error
            assert (await opened.shelf.page()).downloads == ()

    run(go_on())


def test_a_download_is_given_up_with_what_came_of_it(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories[NAME].sent["demo-Q8_0.gguf"] = GGUF[:1000]

    async def work() -> None:
        async with shelf(hub, tmp_path) as opened:
            job = await opened.download(ASKED)
            assert job.error is not None
            assert job.error.reason is Reason.DOWNLOAD_FAILED
            (one,) = (await opened.shelf.page()).downloads
            assert (one.here, one.job, one.problem) == (1000, None, job.error)
            assert (await opened.shelf.discard(one.id)).downloads == ()
            assert not list(opened.cache.rglob("*.incomplete"))
            with pytest.raises(HostError):
                await opened.shelf.discard(one.id)

    run(work())


def test_giving_up_takes_whole_contents_that_nothing_leads_to(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    cache = RepositoryCache(tmp_path / "cache", NAME)
    linked, whole, begun, held, wanted = (sign * 64 for sign in "abcde")
    cache.blob(linked).parent.mkdir(parents=True)
    for blob in (linked, whole, held, wanted):
        cache.blob(blob).write_bytes(b"x")
    cache.part(begun).write_bytes(b"x")
    cache.publish(COMMIT, "main", {"sub/model.gguf": linked})
    hostile = os.path.relpath(precious, cache.blob("x").parent)
    store = Store(tmp_path / "store.sqlite")
    unfinished = UnfinishedDownloads(store, command_of)

    def begin(choice: str, *blobs: str) -> str:
        files = [HubFile(f"{number}", 1, blob, None) for number, blob in enumerate(blobs)]
        asked = ASKED.model_copy(update={"choice": choice, "revision": COMMIT})
        return unfinished.begin(asked, choice, files, tmp_path / "cache", None)

    name = begin("one", linked, whole, begun, held, wanted, hostile)
    begin("two", wanted)
    with cache.held(held) as ours:
        assert ours
        unfinished.discard(name)
    store.close()
    assert {one.name for one in cache.blob("x").parent.iterdir()} == {linked, held, wanted}
    assert precious.read_text() == "mine"


def test_a_damaged_file_is_never_listed(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories[NAME].sent["demo-Q8_0.gguf"] = bytes(len(GGUF))

    async def work() -> None:
        async with shelf(hub, tmp_path) as opened:
            job = await opened.download(ASKED)
            assert job.error is not None
            assert job.error.reason is Reason.VERIFICATION_FAILED
            assert (await opened.models.scan()).models == ()

    run(work())


def test_without_a_hash_it_is_unverified(hub: HubServer, tmp_path: Path) -> None:
    hub.repositories[NAME].rows = [{"rfilename": "demo-Q8_0.gguf", "size": len(GGUF)}]

    async def work() -> None:
        async with shelf(hub, tmp_path) as opened:
            done = DownloadedModel.model_validate((await opened.download(ASKED)).result)
            assert (done.verified, done.unverified_files) == (False, ("demo-Q8_0.gguf",))

    run(work())


def test_a_disk_without_room_is_said_before_a_byte_comes(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: usage)

    async def work() -> None:
        async with shelf(hub, tmp_path) as opened:
            assert (await opened.downloads.files(HubFilesQuery(repository=NAME))).free == 1000
            job = await opened.download(ASKED)
            assert job.error is not None
            assert job.error.reason is Reason.DISK_FULL
            assert job.error.fix is not None

    run(work())
    assert hub.elsewhere is not None
    assert hub.elsewhere.requests == []


def test_offline_is_a_state_of_a_search(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path, Patience(30, ())) as opened:
            found = await opened.downloads.search(HubQuery(words="qwen"))
            assert found.offline is not None
            assert found.offline.reason is Reason.OFFLINE
            assert found.models == ()
            job = await opened.download(ASKED)
            assert job.error is not None
            assert job.error.reason is Reason.OFFLINE
        async with shelf(None, tmp_path, HF_HUB_OFFLINE="1") as opened:
            assert (await opened.shelf.page()).offline
            assert (await opened.downloads.search(HubQuery(words="qwen"))).offline is not None

    run(work())


def test_a_search_finds_and_says_refusals(hub: HubServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(hub, tmp_path) as opened:
            (one,) = (await opened.downloads.search(HubQuery(words="demo"))).models
            assert one.repository == NAME
            hub.repositories[NAME].status, hub.repositories[NAME].code = 403, "GatedRepo"
            job = await opened.download(ASKED)
            assert job.error is not None
            assert job.error.reason is Reason.UNAUTHORIZED

    run(work())


def test_a_checkpoint_of_a_pinned_commit_is_listed_beside_another_main(
    hub: HubServer, tmp_path: Path
) -> None:
    header = b'{"w":{"dtype":"F32","shape":[64],"data_offsets":[0,256]}}'
    weights = len(header).to_bytes(8, "little") + header + bytes(256)
    config = b'{"model_type":"llama","architectures":["LlamaForCausalLM"],"num_hidden_layers":1}'
    hub.repositories["org/st"] = Served({"model.safetensors": weights, "config.json": config})
    asked = DownloadModel(repository="org/st", revision=COMMIT, choice="safetensors")

    async def work() -> None:
        async with shelf(hub, tmp_path) as opened:
            refs = opened.cache / "models--org--st" / "refs"
            refs.mkdir(parents=True)
            (refs / "main").write_text("f" * 40)
            job = await opened.download(asked)
            assert job.state is JobState.DONE, job.error
            (model,) = (await opened.models.page()).models
            assert (model.id, model.commit, model.verified) == (job.result["listed_as"], COMMIT, True)
            blob = os.readlink(f"{model.path}/model.safetensors")
            assert blob.endswith(hashlib.sha256(weights).hexdigest())

    run(work())
