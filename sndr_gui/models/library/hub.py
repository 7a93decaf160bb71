"""The view-model of the download pane: a search, the files of one repository, and what is downloaded."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.library import (
    DownloadModel,
    HubChoice,
    HubFiles,
    HubFilesQuery,
    HubModelEntry,
    HubQuery,
    HubSearch,
)
from engine_host.protocol.operations import library as ops
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.rows import RowsModel
from sndr_gui.models.library.words import choice_columns, found_columns

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?", re.ASCII)


class HubModel(QObject):
    """The model of the download pane; nothing is asked before `search` or `open`.

    Signals:
        changed: what was found, the files, the choice or the state is new
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.found_rows: RowsModel[HubModelEntry] = RowsModel(
            found_columns(), lambda one: one.repository, self
        )
        self.choice_rows: RowsModel[HubChoice] = RowsModel(choice_columns(), lambda one: one.id, self)
        self.found: HubSearch | None = None
        self.files: HubFiles | None = None
        self.problem: Problem | None = None
        self.offline: Problem | None = None
        self.asking = ""
        self._choice = ""
        self._companions: frozenset[str] = frozenset()
        self._asked = 0

    @property
    def choice(self) -> HubChoice | None:
        """The choice that a click on Download fetches."""
        return next((one for one in self.choice_rows.all if one.id == self._choice), None)

    @property
    def companions(self) -> tuple[str, ...]:
        """The companions that go with it."""
        choice = self.choice
        known = choice.companions if choice is not None else ()
        return tuple(one.name for one in known if one.name in self._companions)

    @property
    def size(self) -> int:
        """Bytes that are to come."""
        choice = self.choice
        if choice is None:
            return 0
        beside = [one for one in choice.companions if one.name in self._companions]
        return choice.size - choice.here + sum(one.size - one.here for one in beside)

    @property
    def room(self) -> str:
        """Return what comes, where it goes, and whether it fits."""
        files, choice = self.files, self.choice
        if files is None or choice is None:
            return ""
        free = formats.size(files.free)
        said = tr(
            "{size} are to come; {folder} has {free} free.",
            size=formats.size(self.size),
            folder=files.folder,
            free=free,
        )
        if files.gated and not files.has_token:
            said += " " + tr(
                "It is gated: accept its licence on the hub, and start the host with HF_TOKEN set."
            )
        return (
            said
            if self.fits
            else tr("{said} That does not fit: delete models and empty the trash first.", said=said)
        )

    @property
    def fits(self) -> bool:
        """True where the disk has room, or nobody knows."""
        return self.files is None or self.files.free is None or self.size < self.files.free

    @property
    def can_download(self) -> bool:
        """True where a click would bring something."""
        choice = self.choice
        return choice is not None and self.fits and self.session.connection.connected

    def choose(self, choice: HubChoice | None) -> None:
        """Take another choice."""
        if choice is not None and choice.id != self._choice:
            self._choice = choice.id
            # A projector is what makes a model see: of several the smallest is enough to begin with.
            projectors = [one for one in choice.companions if one.kind == "mmproj"]
            smallest = min(projectors, key=lambda one: one.size, default=None)
            self._companions = frozenset({smallest.name} if smallest is not None else ())
            self.changed.emit()

    def set_companion(self, name: str, wanted: bool) -> None:
        """Fetch a companion too, or not."""
        self._companions = self._companions | {name} if wanted else self._companions - {name}
        self.changed.emit()

    @property
    def request(self) -> DownloadModel | None:
        """The download that a click asks for, pinned to the commit whose files are shown."""
        files, choice = self.files, self.choice
        if files is None or choice is None:
            return None
        return DownloadModel(
            repository=files.repository,
            revision=files.commit,
            choice=choice.id,
            companions=self.companions,
            named="" if files.revision == files.commit else files.revision,
        )

    @property
    def command(self) -> str:
        """The command that downloads the same."""
        asked = self.request
        if asked is None:
            return "sndr models search WORDS"
        words = ["sndr", "models", "download", asked.repository, "--revision", asked.revision]
        words += ["--choice", asked.choice]
        return shlex.join([*words, *(word for name in asked.companions for word in ("--companion", name))])

    def search(self, words: str) -> None:
        """Ask the hub for some words, or for the files of `organisation/model[@revision]`."""
        words = words.strip()
        if not words:
            return
        if _REPOSITORY.fullmatch(words):
            repository, _, revision = words.partition("@")
            self.open(repository, revision or "main")
            return

        async def work(client: AsyncControlClient, number: int) -> None:
            found = await client.call(ops.SEARCH_HUB, HubQuery(words=words[:200]))
            if number == self._asked:
                self.found, self.offline = found, found.offline
                self.found_rows.set_rows(found.models)
                self.files = None
                self.choice_rows.set_rows(())

        self._ask(tr("Searching for {words}…", words=words), work)

    def open(self, repository: str, revision: str = "main") -> None:
        """Ask the hub for the files of a repository."""

        async def work(client: AsyncControlClient, number: int) -> None:
            asked = HubFilesQuery(repository=repository[:200], revision=revision[:120])
            files = await client.call(ops.HUB_FILES, asked)
            if number == self._asked:
                self.files, self.offline = files, None
                self._choice = ""
                self.choice_rows.set_rows(files.choices)
                if files.choices:
                    self.choose(files.choices[0])

        self._ask(tr("Asking for the files of {repository}…", repository=repository), work)

    def download(self) -> None:
        """Download the choice as a job of the host."""
        asked = self.request
        if asked is None or not self.can_download:
            return

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.DOWNLOAD_MODEL, asked))

        self.session.command("download", work, done=self.changed.emit, failed=self._on_failed)

    def _ask(self, what: str, work: Callable[[AsyncControlClient, int], Awaitable[None]]) -> None:
        # An answer to what nobody asks any more is not shown.
        self._asked += 1
        number = self._asked
        self.asking, self.problem = what, None
        self.changed.emit()

        async def send(client: AsyncControlClient) -> None:
            await work(client, number)

        def done() -> None:
            if number == self._asked:
                self.asking = ""
                self.changed.emit()

        def failed(error: HostError) -> None:
            if number == self._asked:
                self._on_failed(error)

        self.session.command("ask the hub", send, done=done, failed=failed)

    def _on_failed(self, error: HostError) -> None:
        if error.reason is Reason.OFFLINE:
            self.offline = error.problem
        else:
            self.problem = None if error.lost else error.problem
        self.changed.emit()
