"""JSON answers of the control API, and how each failure becomes one."""

import json
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from engine_host.core.errors import HostError, defect
from engine_host.core.sizes import size_text
from engine_host.protocol.allowed import refusal
from engine_host.protocol.errors import ErrorAnswer, Fix, Problem, Reason
from engine_host.protocol.language import tr

_log = logging.getLogger(__name__)
_LARGEST_BODY = 32 << 20
_Asked = TypeVar("_Asked", bound=BaseModel)

_STATUS = {
    Reason.BAD_REQUEST: 400,
    Reason.SETTING_INVALID: 400,
    Reason.UNAUTHORIZED: 401,
    Reason.CONSENT_NEEDED: 403,
    Reason.NOT_FOUND: 404,
    Reason.MODEL_FILE_MISSING: 404,
    Reason.PATCH_UNKNOWN: 404,
    Reason.CONFLICT: 409,
    Reason.PLAN_STALE: 409,
    Reason.PROTOCOL_MISMATCH: 426,
    Reason.INTERNAL: 500,
    Reason.UNSUPPORTED: 501,
    Reason.DISK_FULL: 507,
}


def answer(value: BaseModel, status: int = 200) -> Response:
    """A wire value as JSON."""
    return Response(value.model_dump_json(), status, media_type="application/json")


def refused(problem: Problem, status: int | None = None) -> Response:
    """A failure as an `ErrorAnswer`."""
    return answer(ErrorAnswer(error=problem), status or _STATUS.get(problem.reason, 422))


async def checked_body(request: Request, kind: type[_Asked]) -> _Asked:
    """The request's body. Raises HostError(bad_request) that names the field."""
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > _LARGEST_BODY:
            raise HostError(
                Reason.BAD_REQUEST,
                tr("The request is larger than {largest_body}.", largest_body=size_text(_LARGEST_BODY)),
                cause="A larger one is not read to its end, so that none fills the host's memory.",
                fix="Send less at once.",
                evidence={"field": "body", "limit": _LARGEST_BODY},
            )
    return _checked(kind, lambda: kind.model_validate_json(bytes(raw) or b"{}"))


def checked_query(
    request: Request, kind: type[_Asked], more: Mapping[str, str] = MappingProxyType({})
) -> _Asked:
    """The request's parameters; `more` wins. Raises HostError(bad_request) that names the parameter."""
    return _checked(kind, lambda: kind.model_validate({**request.query_params, **more}))


def _checked(kind: type[_Asked], parse: Callable[[], _Asked]) -> _Asked:
    try:
        return parse()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{field}: {refusal}.", field=field, refusal=refusal(first, kind)),
            cause=tr("It is {json}.", json=json.dumps(first["input"], default=str)[:200]),
            fix="Correct that field.",
            evidence={"field": field, "type": first["type"]},
        ) from error


async def on_host_error(_request: Request, error: Exception) -> Response:
    """A HostError as its problem."""
    assert isinstance(error, HostError)
    return refused(error.problem)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Starlette's own refusals (no such path, wrong method) in the protocol's form."""
    assert isinstance(error, HTTPException)
    unknown = error.status_code in {404, 405}
    problem = Problem(
        reason=Reason.UNSUPPORTED if unknown else Reason.BAD_REQUEST,
        message=tr(
            "The engine host has nothing that answers {method} {path}.",
            method=request.method,
            path=request.url.path,
        ),
        cause="The program that asked is of another version than the host.",
        fix=Fix(text="Compare the two; a host from before ends with `sndr quit`.", command="sndr version"),
    )
    return refused(problem, error.status_code)


async def on_client_gone(_request: Request, _error: Exception) -> Response:
    """Return an answer that nobody reads: its client left in the middle of its request."""
    return Response(status_code=400)


async def on_defect(request: Request, error: Exception) -> Response:
    """A defect of ours: logged whole, told in one sentence."""
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refused(defect(error), 500)
