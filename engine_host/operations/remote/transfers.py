"""Model files to and from other machines: planned, then carried as a job that goes on where it stopped."""

import logging
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.outside import files
from engine_host.core.sizes import size_text
from engine_host.operations.models import ModelOperations
from engine_host.operations.performs import performs
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.operations import remote_transfers as ops
from engine_host.protocol.remote.transfers import (
    FetchModel,
    FileStanding,
    ModelTransferPlan,
    ModelTransferred,
    SendModel,
    TransferFile,
    TransferWay,
)
from engine_host.remote.control import answers
from engine_host.remote.hosts import RemoteHosts
from engine_host.remote.transfer.fetching import compared_here, fetch, files_there
from engine_host.remote.transfer.files import Hashes, ModelFiles
from engine_host.remote.transfer.models_there import folder_there, listed_there, path_there
from engine_host.remote.transfer.pace import Told
from engine_host.remote.transfer.sending import Compared, compared_there, files_here, send
from engine_host.remote.transfer.sent import SentModel
from engine_host.remote.transfer.steadily import steadily

_log = logging.getLogger(__name__)
_STEPS = {
    TransferWay.SEND: ("Look at the model", "Compare with what is there", "Send", "Look for it there"),
    TransferWay.FETCH: ("Look at the model", "Compare with what is here", "Fetch", "Look for it here"),
}
_KEPT = tr("What was transferred stays: the same command resumes from it.")


@dataclass(frozen=True)
class _Prepared:
    """A transfer as it was planned, with the files where they come from."""

    plan: ModelTransferPlan
    source: ModelFiles


class ModelTransferOperations:
    """The transfers; those with one host are carried out one after the other."""

    def __init__(
        self,
        hosts: RemoteHosts,
        jobs: JobRunner,
        models: ModelOperations,
    ) -> None:
        self._hosts = hosts
        self._jobs = jobs
        self._models = models
        self._hashes = Hashes()

    @performs(ops.PLAN_SEND)
    async def plan_send(self, name: str, asked: SendModel) -> ModelTransferPlan:
        """Return what sending a model would carry. Raises HostError, of the connection too."""
        self._hosts.connection(name)
        return (await self._send_prepared(name, asked, Told())).plan

    @performs(ops.SEND_MODEL)
    def send(self, name: str, asked: SendModel) -> Job:
        """Send a model there. Raises HostError: not_found, ssh_lost."""
        return self._start(
            JobKind.HOST_SEND,
            TransferWay.SEND,
            f"Send {asked.model} to {name}",
            name,
            asked,
            lambda told: self._send_prepared(name, asked, told),
        )

    def send_again(self, name: str, sent: SentModel) -> Job:
        """Send what is gone there, where it is still what was sent. Raises HostError: not_found, ssh_lost."""
        asked = SendModel(model=sent.model, to=sent.to)

        async def prepared(told: Told) -> _Prepared:
            looked = await self._send_prepared(name, asked, told)
            for file in looked.plan.files:
                here = Path(looked.source.folder, looked.source.read_as(file.name))
                wanted = sent.files.get(str(PurePosixPath(looked.plan.folder, file.name)))
                if wanted is not None and await self._hashes.of(here) != wanted:
                    raise _another_one(name, here, sent)
            return looked

        title = f"Send {Path(sent.model).name} to {name} again"
        return self._start(JobKind.HOST_SEND, TransferWay.SEND, title, name, asked, prepared)

    @performs(ops.PLAN_FETCH)
    async def plan_fetch(self, name: str, asked: FetchModel) -> ModelTransferPlan:
        """Return what fetching a model would carry. Raises HostError, of the connection too."""
        self._hosts.connection(name)
        return (await self._fetch_prepared(name, asked, Told())).plan

    @performs(ops.FETCH_MODEL)
    def fetch(self, name: str, asked: FetchModel) -> Job:
        """Fetch a model from there. Raises HostError: not_found, ssh_lost."""
        return self._start(
            JobKind.HOST_FETCH,
            TransferWay.FETCH,
            f"Fetch {asked.model} from {name}",
            name,
            asked,
            lambda told: self._fetch_prepared(name, asked, told),
        )

    async def _send_prepared(self, name: str, asked: SendModel, told: Told) -> _Prepared:
        found = await self._models.find(asked.model)
        source = await files_here(asked.model, Path(found.path))
        if source.start and not source.start.lower().endswith(".gguf"):
            # A store of blobs gives its files no names.
            source = source.called(f"{found.id}.gguf")
        root = asked.to or await folder_there(self._hosts, name)
        folder = str(PurePosixPath(root, source.name)) if source.name else root
        told.say("")
        compared = await compared_there(self._hosts, name, source, folder, self._hashes, told)
        return self._prepared(name, TransferWay.SEND, asked, found.id, source, compared)

    async def _fetch_prepared(self, name: str, asked: FetchModel, told: Told) -> _Prepared:
        path = await path_there(self._hosts, name, asked.model)
        source = await files_there(self._hosts, name, asked.model, path)
        if source.start and not source.start.lower().endswith(".gguf"):
            source = source.called(f"{PurePosixPath(asked.model).name}.gguf")
        root = files.expanded(asked.to).absolute() if asked.to else self._models.downloads().absolute()
        told.say("")
        compared = await compared_here(self._hosts, name, source, root / source.name, self._hashes, told)
        return self._prepared(name, TransferWay.FETCH, asked, asked.model, source, compared)

    def _prepared(
        self,
        name: str,
        way: TransferWay,
        asked: SendModel | FetchModel,
        model: str,
        source: ModelFiles,
        compared: Compared,
    ) -> _Prepared:
        command = _command(way, name, asked)
        plan = ModelTransferPlan(
            host=name,
            way=way,
            model=model,
            source=str(PurePosixPath(source.folder, source.read_as(source.start))),
            folder=compared.folder,
            files=compared.files,
            size=source.size,
            left=compared.left,
            free=compared.free,
            findings=tuple(_findings(name, way, compared, command, replace=asked.replace)),
            command=command,
        )
        return _Prepared(plan, source)

    def _start(
        self,
        kind: JobKind,
        way: TransferWay,
        title: str,
        name: str,
        asked: SendModel | FetchModel,
        prepare: Callable[[Told], Awaitable[_Prepared]],
    ) -> Job:
        self._hosts.connection(name)

        async def carry_out(control: JobControl) -> dict[str, Any]:
            steps = _STEPS[way]

            def at(number: int) -> Callable[[str, float | None], None]:
                return lambda detail, share: control.step(
                    number, len(steps), steps[number - 1], detail, share
                )

            at(1)("", None)
            control.left = _KEPT
            told = Told(at(2))
            looked = await steadily(self._hosts, name, lambda: prepare(told), lambda: told.breaks(name))
            _refuse(looked.plan)
            lie, began = [], time.monotonic()
            at(3)("", None)
            told = Told(at(3))
            told.total = looked.plan.size
            for file in looked.plan.files:
                if file.standing is not FileStanding.SAME:
                    lie.append(await self._file(name, way, looked, file, told))
                else:
                    lie.append(file)
                told.before += file.size
            seconds = time.monotonic() - began
            at(4)("", None)
            done = await self._listed(name, looked)
            control.left = ""
            if way is TransferWay.SEND:
                self._keep_sent(name, looked, lie)
            update = {"files": tuple(lie), "carried": told.carried, "seconds": round(seconds, 3)}
            return done.model_copy(update=update).model_dump(mode="json")

        return self._jobs.start(kind, title, f"files of {name}", _command(way, name, asked), carry_out)

    def _keep_sent(self, name: str, looked: _Prepared, lie: Sequence[TransferFile]) -> None:
        """Keep what lies there now, for the day on which it does not; a full disk is no harm."""
        plan = looked.plan
        sent = SentModel(
            destination=self._hosts.book.get(name).destination,
            model=plan.source,
            to=str(PurePosixPath(plan.folder).parent) if looked.source.name else plan.folder,
            files={str(PurePosixPath(plan.folder, one.name)): one.sha256 for one in lie if one.sha256},
        )
        try:
            self._hosts.book.sent.keep(sent)
        except HostError as error:
            _log.warning("that %s was sent to %s is not kept: %s", plan.model, name, error.problem.message)

    async def _file(
        self,
        name: str,
        way: TransferWay,
        looked: _Prepared,
        file: TransferFile,
        told: Told,
    ) -> TransferFile:
        folder, source = looked.plan.folder, looked.source

        async def once() -> TransferFile:
            if way is TransferWay.SEND:
                return await send(self._hosts, name, source, file, folder, self._hashes, told)
            return await fetch(self._hosts, name, source, file, folder, told)

        return await steadily(self._hosts, name, once, lambda: told.breaks(name))

    async def _listed(self, name: str, looked: _Prepared) -> ModelTransferred:
        """Return the result: where the model lies, and the id by which it is listed there."""
        plan, start = looked.plan, looked.source.start
        path = str(PurePosixPath(plan.folder, start))
        listed, findings = None, []
        if plan.way is TransferWay.FETCH:
            page = await self._models.scan()
            listed = next((one.id for one in page.models if Path(one.path) == Path(path)), None)
        elif await answers(self._hosts, name):
            listed = await listed_there(self._hosts, name, path)
            if listed is None:
                folder = str(PurePosixPath(plan.folder).parent) if not start else plan.folder
                findings.append(finding("transfer.not-looked-at", host=name, folder=folder, path=path))
        return ModelTransferred(
            host=name,
            way=plan.way,
            model=plan.model,
            path=path,
            listed_as=listed,
            size=plan.size,
            findings=tuple(findings),
        )


def _findings(
    name: str, way: TransferWay, compared: Compared, command: str, *, replace: bool
) -> list[Finding]:
    where = name if way is TransferWay.SEND else "this machine"
    found = []
    if compared.free is not None and compared.left > compared.free:
        found.append(
            finding(
                "transfer.no-room",
                where=where,
                folder=compared.folder,
                needed=size_text(compared.left),
                free=size_text(compared.free),
            )
        )
    others = [one.name for one in compared.files if one.standing is FileStanding.OTHER]
    if others and not replace:
        shown = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        found.append(
            finding(
                "transfer.others",
                where=where,
                folder=compared.folder,
                names=shown,
                command=f"{command} --replace",
            )
        )
    return found


def _another_one(name: str, here: Path, sent: SentModel) -> HostError:
    return HostError(
        Reason.VERIFICATION_FAILED,
        tr("{path} is not what was sent to {name} any more, and was not sent again.", path=here, name=name),
        cause=tr("Its SHA-256 is another one: it was replaced here since."),
        fix=Fix(
            text=tr("Send it if it is the right one."),
            command=shlex.join(["sndr", "host", "send", name, sent.model, "--to", sent.to]),
        ),
        evidence={"path": str(here), "host": name},
    )


def _refuse(plan: ModelTransferPlan) -> None:
    for one in plan.findings:
        if one.severity is Severity.ERROR:
            raise HostError(one.reason or Reason.CONFLICT, one.message, fix=one.fix, evidence=one.evidence)


def _command(way: TransferWay, name: str, asked: SendModel | FetchModel) -> str:
    words = ["sndr", "host", way.value, name, asked.model]
    words += ["--to", asked.to] if asked.to else []
    words += ["--replace"] if asked.replace else []
    return shlex.join(words)
