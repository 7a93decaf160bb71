"""Say from where the files of a model on another machine came, so that they can be brought again."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from engine_host.core.findings.table import finding
from engine_host.deploy.deployment import Deployment, Download, hub_address
from engine_host.deploy.spec import ModelSource
from engine_host.remote.services.answers import FoundFile
from engine_host.remote.transfer.sent import SentModel

_SNAPSHOT = re.compile(r".*/models--([\w.-]+?)--([\w.-]+)/snapshots/([0-9a-f]{40})/([^\n]+)", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


def watched(
    made: Deployment, found: Sequence[FoundFile], preset: ModelSource, sent: Sequence[SentModel], host: str
) -> Deployment:
    """Return a deployment whose watchdog brings the files that were found there again.

    They come from the hub at the commit that they have in its cache, from where the preset has them, or from
    the machine that sent them; each by its SHA-256. One of which none of that is known is a finding.
    """
    files = tuple(one.path for one in found)
    fetched = [_fetched(one, preset, sent) for one in found]
    if fetched and all(fetched):
        return replace(made, files=files, again=tuple(one for one in fetched if one is not None))
    came = {path for one in sent for path in one.files}
    if files and came.issuperset(files):
        return replace(made, files=files, awaited=True)
    pairs = zip(found, fetched, strict=True)
    unknown = [one.path for one, source in pairs if source is None and one.path not in came] or [made.model]
    folder = str(PurePosixPath(unknown[0]).parent)
    told = finding("service.no-source", paths=unknown[:5], host=host, folder=folder)
    return replace(made, findings=(*made.findings, told))


def _fetched(file: FoundFile, preset: ModelSource, sent: Sequence[SentModel]) -> Download | None:
    """Return where a file can be fetched; None where nobody knows, or not what it has to be."""
    digest = file.sha256 or (file.blob if _SHA256.fullmatch(file.blob) else None)
    if in_cache := _SNAPSHOT.fullmatch(file.place):
        organisation, name, commit, inside = in_cache.groups()
        digest = digest or next((one.files[file.path] for one in sent if file.path in one.files), None)
        if digest is not None:
            address = hub_address(f"{organisation}/{name}", commit, inside)
            return Download(address, file.path, file.size, digest)
    for one in preset.files if preset.repository and preset.revision else ():
        same = PurePosixPath(one.name).name == PurePosixPath(file.path).name and one.size == file.size
        if same and one.sha256 and digest in (None, one.sha256):
            address = hub_address(preset.repository or "", preset.revision or "", one.name)
            return Download(address, file.path, one.size, one.sha256)
    return None
