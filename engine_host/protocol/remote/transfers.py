"""Model files on their way to and from other machines: what would be carried, and what was."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from engine_host.protocol.base import Command, Wire
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.text import Line

ModelWord = Annotated[Line, Field(min_length=1, max_length=4096)]
Folder = Annotated[Line, Field(min_length=1, max_length=4096)]


class SendModel(Command):
    """The wish to have a model of this machine on another one.

    `model` is an id of this machine's models or a path; `to` the folder there that gets it, the host's model
    root where it is left out. Other files of its names there stay unless `replace` is said.
    """

    model: ModelWord
    to: Folder | None = None
    replace: bool = False


class FetchModel(Command):
    """The wish to have a model of another machine here.

    `model` is an id of the models there or a path there; `to` the folder here that gets it, this program's
    first model folder where it is left out. Other files of its names here stay unless `replace` is said.
    """

    model: ModelWord
    to: Folder | None = None
    replace: bool = False


class TransferWay(StrEnum):
    """The direction of a transfer, as this machine sees it."""

    SEND = "send"
    FETCH = "fetch"


class FileStanding(StrEnum):
    """The standing of a file where it is to go: not there, in part, another one of its name, or the same."""

    NEW = "new"
    PART = "part"
    OTHER = "other"
    SAME = "same"


class TransferFile(Wire):
    """One file of a model; `name` is its path below the folder of the transfer, sizes in bytes.

    `there` are the bytes that need not be carried. `sha256` is None where nothing had to be compared yet.
    """

    name: str
    size: int
    standing: FileStanding
    there: int = 0
    sha256: str | None = None


class ModelTransferPlan(Wire):
    """Everything that a transfer would carry; an `error` in the findings stops it.

    `source` and `folder` are paths of the two machines: of this one and that one for `send`, the other way
    round for `fetch`. `size` are the bytes of all files and `left` those to carry; `free` is what the disk
    of `folder` has, None where it does not tell. `command` does the same.
    """

    host: str
    way: TransferWay
    model: str
    source: str
    folder: str
    files: tuple[TransferFile, ...] = ()
    size: int = 0
    left: int = 0
    free: int | None = None
    findings: tuple[Finding, ...] = ()
    command: str = ""


class ModelTransferred(Wire):
    """The result of the job: every file lies there with the right SHA-256.

    `path` is what an engine there is started with, `listed_as` the id by which the models there list it,
    None where nobody was asked or it is not listed. `carried` are the bytes that went over the connection in
    `seconds`; both are measured.
    """

    host: str
    way: TransferWay
    model: str
    path: str
    listed_as: str | None = None
    files: tuple[TransferFile, ...] = ()
    size: int = 0
    carried: int = 0
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
