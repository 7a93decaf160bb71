"""JSON answers of the control API, and how each failure becomes one."""

import json
import logging
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from engine_host.core.errors import HostError, defect
from engine_host.protocol.base import Command
from engine_host.protocol.errors import ErrorAnswer, Problem, Reason

_log = logging.getLogger(__name__)
_Body = TypeVar("_Body", bound=Command)

_STATUS = {
    Reason.BAD_REQUEST: 400,
    Reason.SETTING_INVALID: 400,
    Reason.UNAUTHORIZED: 401,
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


def empty() -> Response:
    """An answer that says nothing but that it was done."""
    return Response("{}", media_type="application/json")


def refused(problem: Problem, status: int | None = None) -> Response:
    """A failure as an `ErrorAnswer`."""
    return answer(ErrorAnswer(error=problem), status or _STATUS.get(problem.reason, 422))


async def body(request: Request, kind: type[_Body]) -> _Body:
    """The request's body, checked. Raises HostError(bad_request) that names the field."""
    raw = await request.body()
    try:
        return kind.model_validate_json(raw or b"{}")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise HostError(
            Reason.BAD_REQUEST,
            f"{field}: {first['msg']}.",
            cause=f"It is {json.dumps(first['input'], default=str)[:200]}.",
            fix="Correct that field.",
            evidence={"field": field, "type": first["type"]},
        ) from error


def number(request: Request, name: str, default: int) -> int:
    """A whole number of the query. Raises HostError(bad_request)."""
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError as error:
        raise HostError(Reason.BAD_REQUEST, f"{name} must be a whole number, not {text!r}.") from error


async def on_host_error(_request: Request, error: Exception) -> Response:
    """A HostError as its problem."""
    assert isinstance(error, HostError)
    return refused(error.problem)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Starlette's own refusals (no such path, wrong method) in the protocol's form."""
    assert isinstance(error, HTTPException)
    reason = Reason.NOT_FOUND if error.status_code == 404 else Reason.BAD_REQUEST
    problem = Problem(reason=reason, message=f"{request.method} {request.url.path}: {error.detail}.")
    return refused(problem, error.status_code)


async def on_defect(request: Request, error: Exception) -> Response:
    """A defect of ours: logged whole, told in one sentence."""
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refused(defect(error), 500)
