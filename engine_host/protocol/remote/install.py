"""Our host on another machine: what an install, an update and their undoing would change there, and did."""

from enum import StrEnum

from pydantic import Field

from engine_host.protocol.base import Command, Wire
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.plans import Finding


class InstallOnHost(Command):
    """The wish to have this program's host on another machine.

    `offline` sends the packages from here, though a package index may answer there. `demo` lets the bundled
    model answer a question there in the end.
    """

    offline: bool = False
    demo: bool = False


class RemoteChange(StrEnum):
    """The kind of a planned change on another machine."""

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"
    KEEP = "keep"
    RUN = "run"


class PlannedChange(Spoken):
    """One thing that happens there: a path or a command; bytes where they are known."""

    kind: RemoteChange
    what: str
    size: int | None = None
    note: Sentence = ""
    text: str = ""


class RemoteInstallPlan(Wire):
    """Everything that an install, an update or a removal will do there; an `error` in the findings stops it.

    `release` is what will run there and `before` what runs now: version and part of the wheel's SHA-256.
    `packages` is where they come from: `index` by the machine itself, `here` uploaded. `service` is how the
    host is started: `systemd` for this user, or `plain`.
    """

    host: str
    release: str | None = None
    before: str | None = None
    python: str | None = None
    packages: str | None = None
    service: str | None = None
    changes: tuple[PlannedChange, ...] = ()
    findings: tuple[Finding, ...] = ()


class RemoteInstalled(Wire):
    """The result of the job: what became of it.

    `unchanged` when that release ran there already. `back_to` is the release that one command brings back,
    `repaired` what was wrong with the release that was made anew.
    """

    host: str
    release: str | None = None
    program: str | None = None
    protocol: str | None = None
    service: str | None = None
    back_to: str | None = None
    unchanged: bool = False
    repaired: str | None = None
    demo_answer: str | None = None
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = Field((), description="folders of the program that were there before, and stay")
    findings: tuple[Finding, ...] = ()
