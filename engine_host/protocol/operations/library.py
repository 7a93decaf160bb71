"""The operations on models of the hub and on files of models; `table` has them with all others."""

from typing import Any

from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.library import (
    DownloadModel,
    HubFiles,
    HubFilesQuery,
    HubQuery,
    HubSearch,
    LibraryPage,
    RemoveModel,
    TrashedModel,
    VerifyModel,
)
from engine_host.protocol.operations.definition import Nothing, Operation

# Each row: name, method, path, request, answer, what it does. Formatted by hand, to be read as a table.
# fmt: off

_OF_THE_HUB = (
    Reason.NOT_FOUND, Reason.UNAUTHORIZED, Reason.RATE_LIMITED, Reason.OFFLINE, Reason.DOWNLOAD_FAILED,
    Reason.MODEL_FILE_DAMAGED)

LIBRARY = Operation(
    "models.library", "GET", "/v1/library", Nothing, LibraryPage,
    "Downloads that are not whole, deleted models that can come back, and the disk; asks nobody.",
    command="models downloads")
SEARCH_HUB = Operation(
    "models.search", "GET", "/v1/library/search", HubQuery, HubSearch,
    "Search Hugging Face (`HF_ENDPOINT`); offline is a state of the answer and no error.",
    reasons=_OF_THE_HUB, command="models search", seconds=100)
HUB_FILES = Operation(
    "models.files", "GET", "/v1/library/files", HubFilesQuery, HubFiles,
    "Ask Hugging Face for the files of a repository: what can be downloaded, sizes, what is here, the disk.",
    reasons=(*_OF_THE_HUB, Reason.CONFLICT), command="models files", seconds=100)
DOWNLOAD_MODEL = Operation(
    "models.download", "POST", "/v1/library/downloads", DownloadModel, Job,
    "Download a model, or go on with it; cancelling is a pause. The job's result is a `DownloadedModel`.",
    status=202, job=JobKind.MODEL_DOWNLOAD, command="models download")
DISCARD_DOWNLOAD = Operation(
    "models.discard", "DELETE", "/v1/library/downloads/{id}", Nothing, LibraryPage,
    "Give up a download that is paused, and remove what came of it.",
    reasons=(Reason.NOT_FOUND, Reason.CONFLICT, Reason.NOT_WRITABLE), command="models discard")
VERIFY_MODEL = Operation(
    "models.verify", "POST", "/v1/models/verify", VerifyModel, Job,
    "Hash the files of a model and compare with what their places in a cache promise; the job's result is a "
    "`VerifiedModel`.",
    status=202, reasons=(Reason.MODEL_FILE_MISSING,), job=JobKind.MODEL_VERIFY, command="models verify")
REMOVE_MODEL = Operation(
    "models.remove", "POST", "/v1/models/remove", RemoveModel, TrashedModel,
    "Delete a model; it can be restored for a day. Not while an engine uses it.",
    reasons=(
        Reason.MODEL_FILE_MISSING, Reason.CONFLICT, Reason.UNSUPPORTED, Reason.NOT_WRITABLE,
        Reason.DISK_FULL),
    command="models remove", seconds=30)
RESTORE_MODEL = Operation(
    "models.restore", "POST", "/v1/library/trash/{id}", Nothing, TrashedModel,
    "Put a deleted model back where it was.",
    reasons=(Reason.NOT_FOUND, Reason.CONFLICT, Reason.NOT_WRITABLE), command="models restore", seconds=30)
EMPTY_TRASH = Operation(
    "models.empty", "DELETE", "/v1/library/trash", Nothing, LibraryPage,
    "Delete what was deleted for good, which frees the disk.",
    reasons=(Reason.NOT_WRITABLE,), command="models empty", seconds=120)

# fmt: on

OPERATIONS: tuple[Operation[Any, Any], ...] = tuple(
    value for value in globals().values() if isinstance(value, Operation)
)
