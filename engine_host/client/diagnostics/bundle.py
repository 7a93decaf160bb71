"""One zip for a bug report, collected and masked on this machine; nothing of it is sent anywhere."""

import contextlib
import io
import os
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from engine_host import __version__
from engine_host.client.address import RemoteAddress
from engine_host.client.diagnostics.collected import Collected, Missing, ReportFile
from engine_host.client.diagnostics.from_disk import (
    disks,
    tell_of_autopsies,
    tell_of_crashes,
    tell_of_logs,
    tell_without_host,
    versions,
)
from engine_host.client.diagnostics.from_host import tell_of_host, tell_of_records
from engine_host.client.diagnostics.known_names import learn_from_disk
from engine_host.client.diagnostics.mask import Mask
from engine_host.client.sync import ControlClient, connected
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.core.paths import Folders
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_LONGEST_TOKEN = 4096
_TOP = "sndr-diagnostics"
_COMMAND = "sndr diagnostics --output FOLDER/FILE.zip"
_README = """Diagnostics of SNDR Control Center {program}, collected {at} (UTC).

Taken out: keys, tokens and passwords; the names of the person, of this machine and of hosts; the home folder
(it is ~); addresses of the network and the ids of GPUs, which have numbers instead. Prompts and answers are
in none of the files. Settings, paths of models, names of engines and versions are as they are: look through
the files before you share them.

Files
{files}

Missing
{missing}
"""


@dataclass(frozen=True)
class Bundle:
    """The files of a report and what it lacks; what is shown of it is what is saved."""

    files: tuple[ReportFile, ...]
    missing: tuple[Missing, ...]
    created_at: float

    @property
    def file_name(self) -> str:
        """The name that it is saved by where nobody gives another one."""
        return time.strftime("sndr-diagnostics-%Y%m%d-%H%M%S.zip", time.localtime(self.created_at))


def collect(folders: Folders | None = None, there: RemoteAddress | None = None) -> Bundle:
    """Collect a report of this machine, without a host what files tell; it names what is missing.

    With `there` it is of another machine, as its host tells over the connection: of files there nothing is
    read, and it is masked here. Raises HostError where that host does not answer.
    """
    folders = folders or Folders.resolve()
    at = time.time()
    if there is not None:
        return _collect_there(folders, there, at)
    into = Collected(Mask.of_this_machine(_tokens(folders)))
    learn_from_disk(folders, into.mask)
    told = versions()
    into.add_value("versions.json", told)
    into.add_value("disks.json", disks(folders))
    try:
        client = connected(folders)
    except HostError as error:
        tell_without_host(folders, error.problem.sentence(), into)
    else:
        with client:
            tell_of_host(client, into)
    tell_of_crashes(folders, into)
    tell_of_autopsies(folders, into)
    tell_of_logs(folders, into)
    written, missing = into.masked()
    return Bundle((_readme(told["program"], at, written, missing), *written), missing, at)


def _collect_there(folders: Folders, there: RemoteAddress, at: float) -> Bundle:
    into = Collected(Mask.of_this_machine([*_tokens(folders), *_token(there.token)]))
    # The names by which this machine knows the other one are as private as its own.
    learn_from_disk(folders, into.mask)
    into.mask.know_hosts([there.name])
    with ControlClient(there) as client:
        version = client.connect()
        told = {"program": version.program, "protocol": f"{version.major}.{version.minor}"}
        into.add_value("versions.json", {**told, "collected_with": __version__})
        tell_of_host(client, into)
        tell_of_records(client, into)
    written, missing = into.masked()
    return Bundle((_readme(version.program, at, written, missing), *written), missing, at)


def save(bundle: Bundle, target: Path) -> int:
    """Write the zip, readable by its owner alone, beside its place and then into it; its size in bytes.

    A folder as target gets a file of its own in it. Raises HostError(conflict) for a file that is there,
    HostError(not_writable), HostError(disk_full).
    """
    content = _zip(bundle)
    refuse_place(target)
    try:
        atomic_file.write(target, content, 0o600)
    except HostError as error:
        if error.reason is not Reason.NOT_WRITABLE:
            raise
        raise HostError(
            Reason.NOT_WRITABLE,
            error.problem.message,
            cause=tr("{parent} is not writable for you.", parent=target.parent),
            fix=Fix(text="Give a folder of yours.", command=_COMMAND),
            evidence=error.problem.evidence,
        ) from error
    return len(content)


def refuse_place(target: Path) -> None:
    """Refuse what cannot become a zip. Raises HostError(conflict), HostError(not_writable)."""
    if os.path.lexists(target):
        raise HostError(
            Reason.CONFLICT,
            tr("{target} is there already, and was left as it is.", target=target),
            cause="A file that is there is never replaced by this one.",
            fix=Fix(text="Give another name, or move that file away.", command=_COMMAND),
            evidence={"path": str(target)},
        )
    if not target.parent.is_dir():
        raise HostError(
            Reason.NOT_WRITABLE,
            tr("{target} cannot be written: {parent} is no folder.", target=target, parent=target.parent),
            cause="The folder does not exist, or its name is misspelt.",
            fix=Fix(text="Make it, or give another one.", command=_COMMAND),
            evidence={"path": str(target)},
        )


def place_of(bundle: Bundle, to: str | None) -> Path:
    """Return the whole path of the zip: in this folder where none is given, in a folder that is given."""
    path = Path(os.path.abspath(to or "."))
    return path / bundle.file_name if path.is_dir() else path


def _tokens(folders: Folders) -> list[str]:
    """Return the token of the host that runs, wherever its run folder is."""
    places = (folders, folders.elsewhere())
    return [token for place in places if place is not None for token in _token(place.token)]


def _token(path: Path) -> list[str]:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return [files.read_text(path, _LONGEST_TOKEN).strip()]
    return []


def _readme(
    program: str, at: float, written: tuple[ReportFile, ...], missing: tuple[Missing, ...]
) -> ReportFile:
    shown = "\n".join(f"  {one.name}, {len(one.content):,} bytes" for one in written)
    lacks = "\n".join(f"  {one.name}: {one.why}" for one in missing) or "  nothing"
    day = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
    return ReportFile("README.txt", _README.format(program=program, at=day, files=shown, missing=lacks))


def _zip(bundle: Bundle) -> bytes:
    memory = io.BytesIO()
    when = time.localtime(bundle.created_at)[:6]
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in bundle.files:
            entry = zipfile.ZipInfo(f"{_TOP}/{one.name}", when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, one.content)
    return memory.getvalue()
