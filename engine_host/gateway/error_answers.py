"""Errors in the form that the client reads, OpenAI's, Anthropic's or Ollama's: our own and the engine's."""

import itertools
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from engine_host.core import sse
from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.outside import json_text
from engine_host.protocol.errors import Problem, Reason

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
    # Somebody else ended it: the request was right.
    499: "server_error",
}
# platform.claude.com/docs/en/api/errors
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
}
# vLLM's for a body that is not what its route takes; its message is a list of Python objects.
_NOT_VALID = "Bad Request"
# vLLM's words about a request as a whole, in the midst of where they were raised and what was sent.
_RULE = re.compile(r"""'msg': (['"])(?:Value error, )?(.+?)\1(?=[,}])""")
# llama.cpp's about one field, with the words of what reads its JSON, and all tools behind those about one.
_OF_LLAMACPP = re.compile(r"Field '(\w+)': |Failed to parse (messages|tools): ")
_READER = re.compile(r"\[json\.exception\.[\w.]+\] ")
_ENGINE_CODES = {
    "exceed_context_size_error": "context_length_exceeded",
    "unavailable_error": "engine_not_ready",
    "not_supported_error": "unsupported",
    "authentication_error": "engine_refused_key",
    "BadRequestError": "invalid_value",
    _NOT_VALID: "invalid_value",
}
_LONGEST_MESSAGE, _LONGEST_CODE, _MOST_FIGURES = 2_000, 100, 20
# vLLM names what was too long where others have a type of error.
_TOO_LONG = {"input_tokens", "input_text"}
_SOURCES = {"sndr", "engine", "provider"}
_REASONS = {
    "context_length_exceeded": Reason.CONTEXT_TOO_LONG,
    "engine_not_ready": Reason.ENGINE_NOT_READY,
    "unsupported": Reason.UNSUPPORTED,
}


class Form(Enum):
    """The API whose error format an answer has."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"


_OLLAMA_PATHS = {
    "chat", "generate", "embed", "embeddings", "tags", "show", "version", "ps", "pull", "push", "create",
    "copy", "delete",
}  # fmt: skip


def form_of(path: str, headers: Mapping[str, str] | None = None) -> Form:
    """The form that the clients of a route read; of the models' list its headers tell whose client asks."""
    first = path.partition("/v1/")[2].partition("/")[0]
    if first == "messages" or (first == "models" and "anthropic-version" in (headers or {})):
        return Form.ANTHROPIC
    is_ollamas = path.startswith("/api/") and path.removeprefix("/api/") in _OLLAMA_PATHS
    return Form.OLLAMA if is_ollamas else Form.OPENAI


@dataclass(eq=False)
class EndpointError(Exception):
    """A request that gets an error instead of an answer.

    `status` is the HTTP status, `code` what a program looks at, `message` what a person reads, `param` the
    field of the request at fault, `retry_after` seconds, `source` who says so: `sndr`, `engine` or
    `provider`.
    """

    status: int
    code: str
    message: str
    reason: Reason = Reason.BAD_REQUEST
    param: str | None = None
    type: str = ""
    retry_after: int | None = None
    source: str = "sndr"
    headers: tuple[tuple[str, str], ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.message)
        if not self.type:
            self.type = _TYPES.get(self.status, _TYPES[400] if self.status < 500 else "server_error")

    def body(self) -> dict[str, Any]:
        """The error object of the answer."""
        error: dict[str, Any] = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
            "src": self.source,
        }
        if self.source == "sndr":
            error["reason"] = self.reason.value
        return {"error": {**self.extra, **error}}

    def anthropic_body(self, request_id: str) -> dict[str, Any]:
        """The error object as Anthropic's clients read it."""
        kind = _ANTHROPIC_TYPES.get(self.status, "api_error")
        error = {"type": kind, "message": self._for_anthropic(), "code": self.code, "src": self.source}
        return {"type": "error", "error": error, "request_id": request_id}

    def _for_anthropic(self) -> str:
        """The message; Claude Code reads the two numbers of one about a prompt that is too long."""
        tokens, most = self.extra.get("n_prompt_tokens"), self.extra.get("n_ctx")
        if self.code != "context_length_exceeded" or not isinstance(tokens, int) or not isinstance(most, int):
            return self.message
        return f"prompt is too long: {tokens} tokens > {most} maximum"

    def encoded(self, form: Form = Form.OPENAI, request_id: str = "") -> bytes:
        """The error object as JSON."""
        if form is Form.ANTHROPIC:
            body = self.anthropic_body(request_id)
        elif form is Form.OLLAMA:
            # Ollama's clients show `error` as a text; what programs look at stands beside it.
            body = {"error": self.message, "code": self.code, "src": self.source}
        else:
            body = self.body()
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    def frame(self, form: Form = Form.OPENAI, request_id: str = "") -> bytes:
        """The error object as one frame of an event stream, for an answer that has already begun."""
        if form is Form.OLLAMA:
            return self.encoded(form) + b"\n"
        event = "error" if form is Form.ANTHROPIC else ""
        return sse.frame_of(self.encoded(form, request_id), event)

    def problem(self) -> Problem:
        """The same failure as the control protocol tells it: short, and without text of the request."""
        code = cut_text(self.code, _LONGEST_CODE)
        return Problem(
            reason=self.reason,
            message=cut_text(self.message, _LONGEST_MESSAGE),
            evidence={**self.extra, "status": self.status, "code": code, "source": self.source},
        )


def invalid(message: str, *, param: str | None = None, code: str = "invalid_value") -> EndpointError:
    """A request that is wrong in itself: status 400."""
    return EndpointError(400, code, message, Reason.BAD_REQUEST, param)


def wrong_type(param: str, expected: str) -> EndpointError:
    """A field that holds nothing of its kind: status 400."""
    return invalid(f"{param} must be {expected}.", param=param, code="invalid_type")


def wrong_kind(param: str, kinds: Sequence[str]) -> EndpointError:
    """An object whose `type` is none of those that there are: status 400."""
    return invalid(f"{param} must be an object whose type is one of {', '.join(kinds)}.", param=param)


def engine_fault(status: int, body: bytes) -> EndpointError:
    """The engine's own refusal, its status kept, its error object brought into OpenAI's form.

    Both engines put an integer in `code`; llama.cpp's `exceed_context_size_error` and vLLM's `param` for a
    prompt that is too long become the code that agents look for. Other fields (`n_ctx`, `n_prompt_tokens`)
    are kept. One of ours stands in the place of an engine's frame, told already: it stays as it is.
    """
    # Three digits may be any; what no server answers is the engine's own fault.
    status = status if 400 <= status < 600 else 502
    error = _error_object(body)
    kind = str(error.get("type") or "")
    code = error.get("code")
    text = error.get("message")
    param = error.get("param")
    source = error.get("src")
    is_ours = source in _SOURCES
    too_long = isinstance(param, str) and param in _TOO_LONG
    known = None if is_ours else "context_length_exceeded" if too_long else _ENGINE_CODES.get(kind)
    if known is None:
        known = code if isinstance(code, str) and code else kind or f"engine_{status}"
    figures = (
        (name, value)
        for name, value in error.items()
        if name not in {"message", "type", "param", "code", "src"} and isinstance(value, int | float)
    )
    extra = {cut_text(name, _LONGEST_CODE): value for name, value in itertools.islice(figures, _MOST_FIGURES)}
    message = str(text) if text else f"The engine answered with status {status} and no error object."
    if kind == _NOT_VALID and param == "body" and not is_ours and (rule := _RULE.search(message)):
        # What two fields say together.
        message, param = rule[2], None
    elif kind == _NOT_VALID and isinstance(param, str) and not is_ours:
        # Between the names of fields stand those of its classes.
        param = ".".join(one for one in param.removeprefix("body.").split(".") if not one[:1].isupper())
        message = _not_valid(param, message)
    elif not is_ours and (told := _OF_LLAMACPP.match(message)):
        message, param = _READER.sub("", message).partition("; tools = [")[0], told[1] or told[2]
    return EndpointError(
        status,
        known,
        message,
        _REASONS.get(known, Reason.BAD_REQUEST if status < 500 else Reason.ENGINE_CRASHED),
        param if isinstance(param, str) else None,
        kind,
        2 if status == 503 else None,
        str(source) if is_ours else "engine",
        extra=extra,
    )


def _not_valid(param: str, message: str) -> str:
    """Say what is wrong with a field; vLLM tells of each kind that it might be, by classes of its own."""
    rules = [rule[2] for rule in _RULE.finditer(message)]
    if len(rules) == 1:
        return f"{param}: {rules[0]}. The engine says so."
    among = f" Among what it says: {rules[0]}." if rules else f" It says: {message}"
    return f"{param} is missing, or is nothing that the engine takes there.{among}"


def unreadable(fault: EndpointError) -> EndpointError:
    """The engine's words about a request that it cannot read: status 400, so that nobody sends it again."""
    return EndpointError(
        400, "invalid_value", fault.message, Reason.BAD_REQUEST, fault.param, source="engine"
    )


def _error_object(body: bytes) -> dict[str, Any]:
    """The error object in an engine's answer, or the body's text as its message."""
    try:
        value = json_text.parse(body)
    except ValueError:
        return {"message": body.decode("utf-8", "replace").strip()[:500]}
    if not isinstance(value, dict):
        return {}
    error = value.get("error", value)
    if isinstance(error, dict):
        return error
    return {"message": str(error)}


def no_engine_runs() -> EndpointError:
    """Nothing can answer, and nothing is on its way."""
    return EndpointError(
        503,
        "no_engine_runs",
        "No engine runs. Start a model in SNDR Control Center, or with: sndr run MODEL",
        Reason.NO_ENGINE_RUNS,
    )


def not_loaded(name: str, runs_as: Sequence[str]) -> EndpointError:
    """A model of this machine that does not run, and that requests do not load; or runs by other names."""
    quoted = shlex.quote(name)
    told = (
        f"{name} runs here as {', '.join(runs_as)}. Ask for that, or let a route mean it: sndr routes set "
        f"{quoted} {shlex.quote(runs_as[0])}"
        if runs_as
        else f"{name} is on this machine and not loaded, and requests do not load it. Start it with: "
        f"sndr run {quoted}. To have requests load it: sndr on-demand add {quoted}"
    )
    return EndpointError(404, "model_not_loaded", told, Reason.NO_ENGINE_RUNS, "model")


def engine_starting(names: tuple[str, ...]) -> EndpointError:
    """The asked-for model is still loading."""
    return EndpointError(
        503,
        "engine_not_ready",
        f"{', '.join(names)} is still starting. Try again in a few seconds.",
        Reason.ENGINE_NOT_READY,
        retry_after=3,
    )


def engine_unreachable(name: str) -> EndpointError:
    """The engine takes no connection although it should run."""
    return EndpointError(
        503,
        "engine_unreachable",
        f"The engine of {name} takes no connection; it may have just ended. Its last log lines say why: "
        f"sndr logs {shlex.quote(name)}",
        Reason.ENGINE_CRASHED,
        retry_after=2,
    )


def engine_busy(name: str) -> EndpointError:
    """The engine does not answer a short question in time."""
    return EndpointError(
        503,
        "engine_busy",
        f"{name} does not answer; it may be at work on a long prompt. Try again in 5s.",
        Reason.ENGINE_NOT_READY,
        retry_after=5,
    )


def too_long(fault: EndpointError, tokens: int | None = None, most: int | None = None) -> EndpointError:
    """The engine's words about a prompt that its context does not hold, with the code that agents know.

    `tokens` are those of the prompt, `most` those of the context, where both are known.
    """
    figures = {} if tokens is None or most is None else {"n_prompt_tokens": tokens, "n_ctx": most}
    return replace(
        fault,
        status=400,
        code="context_length_exceeded",
        reason=Reason.CONTEXT_TOO_LONG,
        # That of a failed server, which a client would ask again.
        type="",
        extra={**fault.extra, **figures},
    )


def odd_answer() -> EndpointError:
    """The engine answered in no form that is known of it."""
    return EndpointError(
        502,
        "engine_error",
        "The engine's answer could not be read: it is not in the form that this kind of engine writes.",
        Reason.ENGINE_CRASHED,
        source="engine",
    )


def engine_ended(name: str, *, stopped: bool, message: str | None = None) -> EndpointError:
    """The engine's connection broke, or the engine is dead by its own word, before its answer was complete.

    `message` is the engine's own sentence, kept beside ours.
    """
    if stopped:
        return EndpointError(
            503,
            "engine_stopped",
            f"{name} was stopped, or another start took its place, before the answer was complete. What runs "
            "now is told by: sndr status",
            Reason.CANCELLED,
        )
    return EndpointError(
        502,
        "engine_crashed",
        f"The engine of {name} ended before the answer was complete. Its last log lines say why: "
        f"sndr logs {shlex.quote(name)}",
        Reason.ENGINE_CRASHED,
        extra={"engine_message": cut_text(message, _LONGEST_MESSAGE)} if message else {},
    )


def draining(name: str) -> EndpointError:
    """The engine finishes what it has and takes nothing new."""
    return EndpointError(
        503,
        "draining",
        f"{name} is being stopped, or another start takes its place: it takes no new requests. Try again in "
        "5s; what runs is told by: sndr status",
        Reason.ENGINE_NOT_READY,
        retry_after=5,
    )


def closing() -> EndpointError:
    """The program ends and takes nothing new, whichever engine it is for."""
    return EndpointError(
        503,
        "draining",
        "SNDR Control Center is being closed and takes no new requests. Try again in 5s; it is started with: "
        "sndr serve",
        Reason.ENGINE_NOT_READY,
        retry_after=5,
    )


def closed_meanwhile() -> EndpointError:
    """The program was closed while a request waited or was answered."""
    return EndpointError(
        503,
        "engine_stopped",
        "SNDR Control Center was closed before the answer was complete. It is started with: sndr serve",
        Reason.CANCELLED,
    )


def queue_full(name: str, limit: int) -> EndpointError:
    """Too many requests wait already."""
    return EndpointError(
        429,
        "queue_full",
        f"{limit} requests already wait for a free slot of {name}. Try again in 5s.",
        Reason.QUEUE_FULL,
        retry_after=5,
    )


def answer_too_large(limit: int) -> EndpointError:
    """More than one answer may hold, in bytes: status 400, because the same request meets it again."""
    return EndpointError(
        400,
        "answer_too_large",
        f"The engine's answer is larger than {limit} bytes. Send fewer inputs at once; embeddings are much "
        "smaller with encoding_format base64.",
        Reason.UNSUPPORTED,
    )


def cancelled() -> EndpointError:
    """Somebody at the control centre cancelled this request."""
    return EndpointError(
        499, "cancelled", "This request was cancelled in SNDR Control Center.", Reason.CANCELLED
    )


def internal() -> EndpointError:
    """A mistake of ours; the host's log has the traceback."""
    return EndpointError(
        500,
        "internal",
        "Unexpected error in SNDR Control Center. The host's log has the details.",
        Reason.INTERNAL,
    )
