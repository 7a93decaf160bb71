"""A model file that is deleted on another machine comes back: the real watchdog there, over the real ssh.

`systemctl` is a FAKE program there with notes; the source of the model is a small server.
"""

import hashlib
import shlex
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.package_data import resources
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.deploy import watchdog
from engine_host.deploy.deployment import Download
from engine_host.deploy.spec import ModelSource
from engine_host.deploy.targets.parts import download_script
from engine_host.library.index import ModelIndex
from engine_host.operations.models import ModelOperations
from engine_host.operations.remote.rehydration import Rehydration
from engine_host.operations.remote.sheet import HostSheetOperations
from engine_host.operations.remote.transfers import ModelTransferOperations
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.launch.deploy import RenderTarget
from engine_host.protocol.remote.transfers import SendModel
from engine_host.remote.services.answers import FoundModel
from engine_host.remote.services.sources import watched
from engine_host.remote.services.there.models import model
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines
from tests.unit.asynchronous import run
from tests.unit.deploy.samples import deployed, wanted_of

Open = Callable[..., AbstractAsyncContextManager[Fleet]]
PROGRAM = Path(watchdog.__file__).with_name("watchdog_program.py")
CONTENT = b"GGUF and more" * 1000
COMMIT = "c" * 40


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The place where the model comes from."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "m.gguf").write_bytes(CONTENT)
    with served(partial(Quiet, directory=str(folder))) as found:
        yield f"{found}/m.gguf"


@contextmanager
def served(handler: Callable[..., SimpleHTTPRequestHandler]) -> Iterator[str]:
    """Serve on loopback, and tell the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_: object) -> None:
        """Nothing to say."""


class Service:
    """A service of the machine with its watchdog; it does not run, for its model is gone."""

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.folder = machines.far / ".local/share/sndr/deploy/sndr-a"
        self.folder.mkdir(parents=True)
        copy_text(PROGRAM, self.folder / "watchdog.py")
        tools = machines.far / "bin"
        tools.mkdir()
        self.notes = machines.far / "notes"
        self.notes.touch()
        fake = f'#!/bin/sh\n# FAKE\necho "$@" >>{self.notes}\necho ActiveState=failed\n'
        (tools / "systemctl").write_text(fake, encoding="utf-8")
        (tools / "systemctl").chmod(0o755)
        self.tools = tools
        self.variables: tuple[str, ...] = ()

    def look(self, *more: str) -> str:
        """Have the watchdog look once, as its timer does; return what it says."""
        words = [
            *("env", f"PATH={self.tools}:/usr/local/bin:/usr/bin:/bin", *self.variables),
            *("python3", "watchdog.py"),
            *("--unit", "sndr-a.service", "--address", "http://127.0.0.1:9", "--health", "/health"),
            *("--path", "/v1/completions", "--body", "{}", "--start-seconds", "1"),
            *("--answer-seconds", "1", "--failures", "2", *more),
        ]
        command = f"cd {shlex.quote(str(self.folder))} && exec {shlex.join(words)}"
        ended = subprocess.run(
            ["ssh", "-F", str(self.machines.config), "-T", "direct", command],
            capture_output=True,
            text=True,
            env=self.machines.environment(),
            timeout=60,
            check=False,
        )
        return ended.stdout + ended.stderr

    @property
    def started(self) -> bool:
        """True if it was started."""
        return "start sndr-a.service" in self.notes.read_text(encoding="utf-8").splitlines()


def copy_text(source: Path, target: Path) -> None:
    """Copy the text of a program."""
    target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")


@pytest.fixture
def connected(fleet: Open) -> Callable[[], AbstractAsyncContextManager[Fleet]]:
    """Open a connection to the machine."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Fleet]:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            yield found

    return opened


def test_a_deleted_model_file_is_fetched_from_its_source_and_checked(
    machines: Machines, address: str, connected: Callable[[], AbstractAsyncContextManager[Fleet]]
) -> None:
    service = Service(machines)
    model = machines.far / ".local/share/sndr/models/m.gguf"
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    made = deployed(wanted_of("qwen3.6-27b-q4-24"), RenderTarget.SYSTEMD)
    fetch = service.folder / "download.sh"
    words = ("--file", str(model), "--rehydrate", str(fetch))

    def source(digest: str) -> None:
        text = download_script(replace(made, downloads=(Download(address, "m.gguf", None, digest),))).text
        fetch.write_text(text, encoding="utf-8")
        fetch.chmod(0o755)

    async def work() -> None:
        async with connected() as found:
            operations = HostSheetOperations(found.hosts)
            source("0" * 64)
            said = service.look(*words)
            (seen,) = (await operations.watchdogs("gpu")).watchdogs
            assert (seen.state, seen.missing) == ("failing", (str(model),)), said
            assert not model.exists(), "what is not the model is not kept"
            assert not service.started
            source(sha256)
            service.look(*words)
            (seen,) = (await operations.watchdogs("gpu")).watchdogs
            assert (seen.state, seen.missing) == ("rehydrated", ())
            assert [one.state for one in seen.events][-2:] == ["rehydrating", "rehydrated"]

    run(work())
    assert model.read_bytes() == CONTENT
    assert service.started


def test_a_deleted_model_file_that_has_no_source_is_sent_from_here(
    machines: Machines, tmp_path: Path, connected: Callable[[], AbstractAsyncContextManager[Fleet]]
) -> None:
    service = Service(machines)
    here = tmp_path / "m.gguf"
    here.write_bytes(next((resources() / "models").rglob("*.gguf")).read_bytes())
    model = machines.far / "models" / "m.gguf"

    async def work() -> None:
        store, events = Store(tmp_path / "jobs.db"), EventLog()
        jobs = JobRunner(events.publish, store)
        settings = SettingsFile(tmp_path / "config")
        models = ModelOperations(ModelIndex(lambda: ()), settings, events, lambda: tmp_path)
        async with connected() as found:
            sheets = HostSheetOperations(found.hosts)
            assert "nothing is known that fetches it" in service.look("--file", str(model))
            (seen,) = (await sheets.watchdogs("gpu")).watchdogs
            assert (seen.state, seen.missing) == ("failing", (str(model),))
            transfers = ModelTransferOperations(found.hosts, jobs, models)
            job = transfers.send("gpu", SendModel(model=str(here), to=str(model.parent)))
            assert (await jobs.ended(job.id)).state is JobState.DONE
            assert "there again" in service.look("--file", str(model))
            (seen,) = (await sheets.watchdogs("gpu")).watchdogs
            assert (seen.state, seen.missing) == ("rehydrated", ())
        store.close()

    run(work())
    assert model.read_bytes() == here.read_bytes()
    assert service.started


class Hub(SimpleHTTPRequestHandler):
    """FAKE hub: one commit of one repository, by the path that the real one has."""

    def do_GET(self) -> None:
        """Answer with the file."""
        there = self.path == f"/me/m/resolve/{COMMIT}/m.gguf"
        self.send_response(200 if there else 404)
        self.send_header("Content-Length", str(len(CONTENT) if there else 0))
        self.end_headers()
        self.wfile.write(CONTENT if there else b"")

    def log_message(self, *_: object) -> None:
        """Nothing to say."""


def test_a_file_of_the_hubs_cache_there_comes_back_at_its_commit(machines: Machines) -> None:
    service = Service(machines)
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    repository = machines.far / ".cache/huggingface/hub/models--me--m"
    path = repository / "snapshots" / COMMIT / "m.gguf"
    blob = repository / "blobs" / sha256
    for one in (path, blob):
        one.parent.mkdir(parents=True)
    blob.write_bytes(CONTENT)
    path.symlink_to(blob)
    said = FoundModel.model_validate(model({"path": str(path)}))
    made = deployed(wanted_of("qwen3.6-27b-q4-24"), RenderTarget.SYSTEMD)
    made = watched(
        replace(made, downloads=(), again=(), local=True), said.sources, ModelSource("m"), (), "gpu"
    )
    fetch = service.folder / "download.sh"
    fetch.write_text(download_script(made).text, encoding="utf-8")
    fetch.chmod(0o755)
    (unit,) = [one for one in watchdog.watchdog_files(made, native=True) if one.name.endswith(".service")]
    assert f"--file {path}" in unit.text
    assert "--rehydrate" in unit.text
    blob.unlink()
    with served(Hub) as address:
        service.variables = (f"HF_ENDPOINT={address}",)
        said_again = service.look("--file", str(path), "--rehydrate", str(fetch))
    assert "fetched again and checked" in said_again
    assert path.read_bytes() == CONTENT
    assert service.started


def test_a_deleted_model_that_was_sent_from_here_is_sent_again_by_itself(
    machines: Machines, tmp_path: Path, connected: Callable[[], AbstractAsyncContextManager[Fleet]]
) -> None:
    service = Service(machines)
    here, root = tmp_path / "m.gguf", machines.far / "models"
    here.write_bytes(next((resources() / "models").rglob("*.gguf")).read_bytes())
    content = here.read_bytes()
    there = root / "m.gguf"

    async def work() -> None:
        store, events = Store(tmp_path / "jobs.db"), EventLog()
        jobs = JobRunner(events.publish, store)
        settings = SettingsFile(tmp_path / "config")
        models = ModelOperations(ModelIndex(lambda: ()), settings, events, lambda: tmp_path)
        async with connected() as found:
            transfers = ModelTransferOperations(found.hosts, jobs, models)
            rehydration = Rehydration(found.hosts, jobs, transfers, again=0.0)
            job = transfers.send("gpu", SendModel(model=str(here), to=str(root)))
            assert (await jobs.ended(job.id)).state is JobState.DONE

            async def looked() -> Job | None:
                known = {one.id for one in jobs.all()}
                await rehydration.look("gpu")
                new = [one for one in jobs.all() if one.id not in known]
                return await jobs.ended(new[0].id) if new else None

            there.unlink()
            service.look("--file", str(there))
            assert await looked() is None, "that watchdog was not told that it may"
            said = service.look("--file", str(there), "--awaited")
            assert "the machine that sent it brings it again" in said
            here.write_bytes(content + b"another one")
            failed = await looked()
            assert failed is not None
            assert failed.error is not None
            assert failed.error.reason is Reason.VERIFICATION_FAILED
            assert not there.exists()
            here.write_bytes(content)
            done = await looked()
            assert done is not None
            assert (done.state, done.title) == (JobState.DONE, "Send m.gguf to gpu again")
            assert "there again" in service.look("--file", str(there), "--awaited")
            assert await looked() is None
        store.close()

    run(work())
    assert there.read_bytes() == content
    assert service.started
