"""Models verified, deleted and restored on real files: whose they are, what uses them, what comes back."""

import hashlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine_host.core.errors import HostError
from engine_host.library.hub.cache import RepositoryCache
from engine_host.protocol.errors import Reason
from engine_host.protocol.library import RemoveModel, VerifiedModel, VerifyModel
from tests.unit.asynchronous import run
from tests.unit.library.test_gguf import gguf
from tests.unit.operations.library.shelves import Shelf, shelf

GGUF = gguf()
SHA = hashlib.sha256(GGUF).hexdigest()
OLD, NEW = "a" * 40, "b" * 40


def cached(root: Path, name: str = "org/demo", content: bytes = GGUF, blob: str = SHA) -> RepositoryCache:
    """Put a file into a cache of the hub, in two revisions."""
    cache = RepositoryCache(root, name)
    cache.blob(blob).parent.mkdir(parents=True)
    cache.blob(blob).write_bytes(content)
    for commit in (OLD, NEW):
        cache.publish(commit, "main", {"demo.gguf": blob})
    return cache


def tree(folder: Path) -> dict[str, str]:
    """Return every file below a folder, with what a link leads to."""
    return {
        str(one.relative_to(folder)): os.readlink(one) if one.is_symlink() else str(one.stat().st_size)
        for one in sorted(folder.rglob("*"))
        if not one.is_dir()
    }


async def refused(opened: Shelf, asked: RemoveModel) -> HostError:
    with pytest.raises(HostError) as caught:
        await opened.shelf.remove(asked)
    return caught.value


def test_a_model_of_ones_own_goes_and_comes_back(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            for number in (1, 2):
                (opened.folder / f"split-0000{number}-of-00002.gguf").write_bytes(b"GGUF" + bytes(60))
            (opened.folder / "demo.gguf").write_bytes(GGUF)
            before = tree(opened.folder)
            await opened.models.scan()
            gone = await opened.shelf.remove(RemoveModel(model="demo"))
            assert gone.size == len(GGUF)
            assert "demo" not in {one.id for one in (await opened.models.page()).models}
            split = next(one for one in (await opened.models.page()).models if one.problem is not None)
            both = await opened.shelf.remove(RemoveModel(model=split.path))
            assert tree(opened.folder) == {}
            assert {one.id for one in (await opened.shelf.page()).trash} == {gone.id, both.id}
            for one in (gone, both):
                await opened.shelf.restore(one.id)
            assert tree(opened.folder) == before
            assert (await opened.shelf.page()).trash == ()
            with pytest.raises(HostError) as caught:
                await opened.shelf.restore(gone.id)
            assert caught.value.reason is Reason.NOT_FOUND

    run(work())


def test_of_another_program_only_when_that_was_meant(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            cached(opened.cache)
            before = tree(opened.cache)
            await opened.models.scan()
            error = await refused(opened, RemoveModel(model="demo"))
            assert error.reason is Reason.CONFLICT
            assert error.problem.evidence["owner"] == "Hugging Face"
            assert error.problem.fix is not None
            assert error.problem.fix.command == "sndr models remove demo --shared"
            assert tree(opened.cache) == before
            gone = await opened.shelf.remove(RemoveModel(model="demo", shared=True))
            assert gone.size == len(GGUF)
            assert not any(name.startswith("models--") for name in tree(opened.cache))
            await opened.shelf.restore(gone.id)
            assert tree(opened.cache) == before
            assert [one.id for one in (await opened.models.page()).models] == ["demo"]

    run(work())


def test_of_several_files_of_a_repository_one_goes(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            cache = cached(opened.cache)
            other = hashlib.sha256(b"other").hexdigest()
            cache.blob(other).write_bytes(b"GGUF other")
            cache.publish(NEW, "main", {"other.gguf": other, "mmproj.gguf": other})
            before = tree(opened.cache)
            await opened.models.scan()
            gone = await opened.shelf.remove(RemoveModel(model="demo", shared=True))
            left = tree(opened.cache)
            assert {name.rpartition("/")[2] for name in left if "snapshots" in name} == {
                "other.gguf",
                "mmproj.gguf",
            }
            assert not cache.blob(SHA).exists()
            assert cache.blob(other).exists()
            await opened.shelf.restore(gone.id)
            assert tree(opened.cache) == before

    run(work())


def test_what_an_engine_uses_stays(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            cache = cached(opened.cache)
            await opened.models.scan()
            used = str(cache.snapshot(OLD) / "demo.gguf")
            plan = SimpleNamespace(model_path="/elsewhere", argv=("server", "--mmproj", used))
            opened.running.append(cast(Any, SimpleNamespace(name="demo", id="engine-1", plan=plan)))
            error = await refused(opened, RemoveModel(model="demo", shared=True))
            assert error.reason is Reason.CONFLICT
            assert error.problem.fix is not None
            assert error.problem.fix.command == "sndr stop demo"
            assert tree(opened.cache)

    run(work())


def test_a_checkpoint_that_an_engine_runs_from_by_its_folder_stays(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            cache = RepositoryCache(opened.cache, "org/st")
            header = b'{"w":{"dtype":"F32","shape":[64],"data_offsets":[0,256]}}'
            cache.blob("c" * 40).parent.mkdir(parents=True)
            cache.blob("c" * 40).write_bytes(b'{"model_type":"llama","architectures":["LlamaForCausalLM"]}')
            for commit, revision, blob in ((OLD, OLD, "d" * 64), (NEW, "main", "e" * 64)):
                weights = len(header).to_bytes(8, "little") + header + bytes(256)
                cache.blob(blob).write_bytes(weights)
                cache.publish(commit, revision, {"model.safetensors": blob, "config.json": "c" * 40})
            folder = str(cache.snapshot(OLD))
            before = tree(opened.cache)
            await opened.models.scan()
            plan = SimpleNamespace(model_path=folder, argv=("vllm", "serve", folder))
            opened.running.append(cast(Any, SimpleNamespace(name="st", id="engine-1", plan=plan)))
            error = await refused(opened, RemoveModel(model=folder, shared=True))
            assert (error.reason, error.problem.evidence) == (Reason.CONFLICT, {"engine": "engine-1"})
            assert tree(opened.cache) == before
            await opened.shelf.remove(RemoveModel(model=str(cache.snapshot(NEW)), shared=True))
            assert (Path(folder) / "model.safetensors").is_file()

    run(work())


def test_what_came_of_another_download_stays(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            cache = cached(opened.cache)
            cache.part("d" * 64).write_bytes(b"begun")
            cache.blob("e" * 64).write_bytes(b"whole")
            await opened.models.scan()
            gone = await opened.shelf.remove(RemoveModel(model="demo", shared=True))
            assert {one.name for one in cache.blob("x").parent.iterdir()} == {
                "d" * 64 + ".incomplete",
                "e" * 64,
            }
            await opened.shelf.restore(gone.id)
            assert cache.blob(SHA).read_bytes() == GGUF

    run(work())


def test_it_does_not_come_back_over_what_is_there_now(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            path = opened.folder / "demo.gguf"
            path.write_bytes(GGUF)
            await opened.models.scan()
            gone = await opened.shelf.remove(RemoveModel(model="demo"))
            path.write_bytes(b"new")
            with pytest.raises(HostError) as caught:
                await opened.shelf.restore(gone.id)
            assert caught.value.reason is Reason.CONFLICT
            assert path.read_bytes() == b"new"
            path.unlink()
            await opened.shelf.restore(gone.id)
            assert path.read_bytes() == GGUF

    run(work())


def test_the_trash_is_emptied_after_a_day_or_when_asked(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            trash = tmp_path / "data" / "trash"
            for name in ("one", "two"):
                (opened.folder / f"{name}.gguf").write_bytes(GGUF)
            await opened.models.scan()
            first = await opened.shelf.remove(RemoveModel(model="one"))
            opened.now[0] += 20 * 3600
            second = await opened.shelf.remove(RemoveModel(model="two"))
            assert {one.id for one in (await opened.shelf.page()).trash} == {first.id, second.id}
            opened.now[0] += 5 * 3600
            assert [one.id for one in (await opened.shelf.page()).trash] == [second.id]
            assert (await opened.shelf.empty()).trash == ()
            assert tree(trash) == {}

    run(work())


def test_a_note_of_somebody_else_deletes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            precious = tmp_path / "precious" / "x"
            precious.parent.mkdir()
            precious.write_text("mine")
            trash = tmp_path / "data" / "trash"
            trash.mkdir(parents=True)
            for name, target in (("a", str(precious)), ("b", f"{tmp_path}/precious/../precious/x")):
                (trash / f"{name}.json").write_text(
                    f'{{"id":"{name}","model":"m","path":"p","found_in":"f","size":1,"at":1,'
                    f'"moved":[["{tmp_path}/a","{target}"]]}}'
                )
            (trash / "broken.json").write_text("{")
            await opened.shelf.empty()
            assert precious.read_text() == "mine"

    run(work())


def test_a_folder_that_refuses_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            cached(opened.cache)
            before = tree(opened.cache)
            await opened.models.scan()
            (opened.cache / "models--org--demo" / "blobs" / ("c" * 64)).write_text("x")
            before = tree(opened.cache)
            real, done = os.rename, []

            def rename(source: str, target: str) -> None:
                done.append(source)
                if len(done) == 1 and "models--" in str(source):
                    raise OSError(13, "no")
                real(source, target)

            monkeypatch.setattr(os, "rename", rename)
            error = await refused(opened, RemoveModel(model="demo", shared=True))
            assert error.reason is Reason.NOT_WRITABLE
            assert tree(opened.cache) == before
            assert (await opened.shelf.page()).trash == ()

    run(work())


def test_a_verification_says_what_it_found(tmp_path: Path) -> None:
    async def work() -> None:
        async with shelf(None, tmp_path) as opened:
            cached(opened.cache)
            cached(opened.cache, "org/wrong", GGUF + bytes(8), "c" * 64)
            (opened.folder / "own.gguf").write_bytes(GGUF + bytes(16))
            page = await opened.models.scan()
            assert {one.verified for one in page.models} == {None}
            said = {}
            for model in page.models:
                job = await opened.jobs.ended((await opened.shelf.verify(VerifyModel(model=model.id))).id)
                assert job.error is None
                said[model.repository] = VerifiedModel.model_validate(job.result).right
            assert said == {"org/demo": True, "org/wrong": False, None: None}
            marks = {one.repository: one.verified for one in (await opened.models.page()).models}
            assert marks == said

    run(work())
