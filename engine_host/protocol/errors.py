"""Errors on the wire: a reason for code, a message, a cause and a next action for people."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from engine_host.protocol.base import Wire
from engine_host.protocol.language.spoken import Sentence, Spoken


class Reason(StrEnum):
    """The reason of a failure; the only part of an error that code looks at."""

    BAD_REQUEST = "bad_request"
    BUILD_FAILED = "build_failed"
    CANCELLED = "cancelled"
    COMPILER_MISSING = "compiler_missing"
    CONFLICT = "conflict"
    CONSENT_NEEDED = "consent_needed"
    CONTEXT_TOO_LONG = "context_too_long"
    DATABASE_TOO_NEW = "database_too_new"
    DISK_FULL = "disk_full"
    DOWNLOAD_FAILED = "download_failed"
    ENGINE_CRASHED = "engine_crashed"
    ENGINE_KILLED = "engine_killed"
    ENGINE_NOT_READY = "engine_not_ready"
    ENGINE_START_FAILED = "engine_start_failed"
    ENGINE_START_TIMEOUT = "engine_start_timeout"
    ENGINE_UNUSABLE = "engine_unusable"
    FLAG_UNSUPPORTED = "flag_unsupported"
    GGUF_TOO_NEW = "gguf_too_new"
    GGUF_TRUNCATED = "gguf_truncated"
    HOST_GONE = "host_gone"
    HOST_KEY_CHANGED = "host_key_changed"
    HOST_KEY_UNKNOWN = "host_key_unknown"
    HOST_RESTARTED = "host_restarted"
    HOST_UNREACHABLE = "host_unreachable"
    ILLEGAL_INSTRUCTION = "illegal_instruction"
    INSTALL_FAILED = "install_failed"
    INTERNAL = "internal"
    KERNEL_UNSUPPORTED = "kernel_unsupported"
    KV_CACHE_UNSAFE = "kv_cache_unsafe"
    KV_TYPE_UNSUPPORTED = "kv_type_unsupported"
    MODEL_ARCHITECTURE_UNKNOWN = "model_architecture_unknown"
    MODEL_FILE_DAMAGED = "model_file_damaged"
    MODEL_FILE_MISSING = "model_file_missing"
    MODEL_WEIGHTS_MISMATCH = "model_weights_mismatch"
    NO_ENGINE_RUNS = "no_engine_runs"
    NOT_FOUND = "not_found"
    NOT_GGUF = "not_gguf"
    NOT_WRITABLE = "not_writable"
    OFFLINE = "offline"
    OUT_OF_MEMORY = "out_of_memory"
    PATCH_CONFLICT = "patch_conflict"
    PATCH_CYCLE = "patch_cycle"
    PATCH_INVALID = "patch_invalid"
    PATCH_REQUIRED_FAILED = "patch_required_failed"
    PATCH_UNKNOWN = "patch_unknown"
    PLAN_STALE = "plan_stale"
    PORT_IN_USE = "port_in_use"
    PRESET_CONFLICT = "preset_conflict"
    PRESET_INVALID = "preset_invalid"
    PROTOCOL_MISMATCH = "protocol_mismatch"
    PROVIDER_FAILED = "provider_failed"
    QUANTIZATION_UNSUPPORTED = "quantization_unsupported"
    QUEUE_FULL = "queue_full"
    RATE_LIMITED = "rate_limited"
    REMOTE_NOT_ALLOWED = "remote_not_allowed"
    RUN_FOLDER_UNSAFE = "run_folder_unsafe"
    SECOND_INSTANCE = "second_instance"
    SETTING_INVALID = "setting_invalid"
    SOURCE_PATCH_FAILED = "source_patch_failed"
    SSH_AUTH_FAILED = "ssh_auth_failed"
    SSH_FAILED = "ssh_failed"
    SSH_FORWARD_REFUSED = "ssh_forward_refused"
    SSH_LOST = "ssh_lost"
    SSH_MISSING = "ssh_missing"
    SSH_UNREACHABLE = "ssh_unreachable"
    UNAUTHORIZED = "unauthorized"
    UNSUPPORTED = "unsupported"
    VERIFICATION_FAILED = "verification_failed"


class Action(Wire):
    """A request that the window can send to mend what went wrong."""

    method: Literal["POST", "PUT", "DELETE"]
    path: str
    body: dict[str, Any] = Field(default_factory=dict)


class FixPart(StrEnum):
    """A part of a fix that has a name, so that whoever says it elsewhere need not look for its words."""

    RAISE_LIMIT = "raise_limit"


class Fix(Spoken):
    """The next action of the person; `command` is its equivalent command, where there is one.

    `settings` of the start that is being planned do it, by name, where a request to the host does not.
    A text that `begins_with` a part has the others in `rest`.
    """

    text: Sentence
    begins_with: FixPart | None = None
    rest: Sentence = ""
    command: str | None = None
    action: Action | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


class Problem(Spoken):
    """One failure: what happened, its likely cause, what to do next, and what shows it."""

    reason: Reason
    message: Sentence
    cause: Sentence = ""
    fix: Fix | None = None
    evidence: dict[str, Any] = Field(default_factory=dict)

    def sentence(self) -> str:
        """The failure as one paragraph: message, cause and next action."""
        given = (self.message, self.cause, self.fix.text if self.fix else "")
        parts = [part.strip() for part in given if part.strip()]
        # Words of another program have no full stop, and the next sentence would run on.
        before = [part if part.endswith((".", "!", "?", ":")) else f"{part}." for part in parts[:-1]]
        return " ".join([*before, *parts[-1:]])


class ErrorAnswer(Wire):
    """The body of every answer of the control API that is not a success."""

    error: Problem
