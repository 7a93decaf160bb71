"""The control API as a whole: every answer in the protocol's form, and commands done once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest
from starlette.types import Message

from engine_host.api import answers
from engine_host.operations.host import PROGRAM
from engine_host.protocol.base import Version
from engine_host.protocol.engines import Backend
from engine_host.protocol.errors import ErrorAnswer, Problem, Reason
from engine_host.protocol.jobs import Job, JobPage, JobState
from engine_host.protocol.logs import LogPage
from engine_host.protocol.settings import SettingPage
from tests.unit.api.door import Door, door
from tests.unit.asynchronous import run

pytestmark = pytest.mark.usefixtures("home")


def through(work: Callable[[Door], Coroutine[Any, Any, None]]) -> None:
    async def act() -> None:
        async with door() as opened:
            await work(opened)

    run(act())


def problem(answer: httpx.Response) -> Problem:
    assert answer.headers["content-type"] == "application/json"
    return ErrorAnswer.model_validate_json(answer.content).error


def test_tells_its_version() -> None:
    async def work(door: Door) -> None:
        version = Version.model_validate_json((await door.client.get("/v1/version")).content)
        assert (version.major, version.program, version.run_id) == (1, PROGRAM, door.events.run_id)

    through(work)


def test_nothing_is_told_without_the_token() -> None:
    async def work(door: Door) -> None:
        for path in ("/v1/version", "/v1/events", "/openai/v1/models", "/nothing"):
            answer = await door.client.get(path, headers={"authorization": "Bearer old"})
            assert answer.status_code == 401
            assert problem(answer).reason is Reason.UNAUTHORIZED

    through(work)


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/v1/nothing", 404, Reason.UNSUPPORTED),
        ("PUT", "/v1/engines", 405, Reason.UNSUPPORTED),
        ("GET", "/v1/engines/engine-x", 404, Reason.NOT_FOUND),
        ("DELETE", "/v1/engines/engine-x", 404, Reason.NOT_FOUND),
        ("DELETE", "/v1/requests/r", 404, Reason.NOT_FOUND),
        ("GET", "/v1/jobs/job-x", 404, Reason.NOT_FOUND),
        ("DELETE", "/v1/jobs/job-x", 404, Reason.NOT_FOUND),
        ("GET", "/v1/plans/plan-x", 404, Reason.NOT_FOUND),
        ("GET", "/v1/logs?severity=loud", 400, Reason.BAD_REQUEST),
        ("GET", "/v1/logs?limit=many", 400, Reason.BAD_REQUEST),
        ("GET", "/v1/telemetry?since=nan", 400, Reason.BAD_REQUEST),
        ("GET", "/v1/telemetry?step=soon", 400, Reason.BAD_REQUEST),
        ("GET", "/v1/events?after=yesterday", 400, Reason.BAD_REQUEST),
        ("GET", "/v1/host", 500, Reason.INTERNAL),
    ],
)
def test_every_refusal_has_the_protocols_form(method: str, path: str, status: int, reason: Reason) -> None:
    async def work(door: Door) -> None:
        answer = await door.client.request(method, path)
        assert (answer.status_code, problem(answer).reason) == (status, reason)
        assert problem(answer).message

    through(work)


@pytest.mark.parametrize(
    ("path", "content", "field"),
    [
        ("/v1/plans", b"", "model"),
        ("/v1/plans", b"{", "body"),
        ("/v1/plans", b"\xff\xfe", "body"),
        ("/v1/plans", b"[]", "body"),
        ("/v1/plans", b'{"model": "m", "overides": {}}', "overides"),
        ("/v1/plans", b'{"model": "m", "overrides": {"streams": 0}}', "overrides.streams"),
        ("/v1/plans", b'{"model": "m", "overrides": {"context": 1e400}}', "overrides.context"),
        ("/v1/engines", b'{"plan": 3}', "plan"),
    ],
)
def test_a_wrong_body_names_its_field(path: str, content: bytes, field: str) -> None:
    async def work(door: Door) -> None:
        answer = await door.client.post(path, content=content)
        assert answer.status_code == 400
        assert problem(answer).reason is Reason.BAD_REQUEST
        assert problem(answer).evidence["field"] == field

    through(work)


def test_a_body_without_an_end_is_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_LARGEST_BODY", 100_000)

    async def work(door: Door) -> None:
        answer = await door.client.post("/v1/plans", content=b" " * 100_001)
        assert answer.status_code == 400
        assert problem(answer).evidence == {"field": "body", "limit": 100_000}

    through(work)


def test_a_client_that_leaves_in_its_request_is_no_defect(caplog: pytest.LogCaptureFixture) -> None:
    async def work(door: Door) -> None:
        said: list[Message] = [
            {"type": "http.request", "body": b"{", "more_body": True},
            {"type": "http.disconnect"},
        ]
        sent: list[Message] = []

        async def receive() -> Message:
            return said.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        token = door.client.headers["authorization"].encode()
        scope = {"type": "http", "method": "POST", "path": "/v1/plans", "query_string": b""}
        await door.app({**scope, "headers": [(b"authorization", token)]}, receive, send)
        assert said == []
        assert sent[0]["status"] == 400

    through(work)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_defect_is_told_in_one_sentence_and_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    async def work(door: Door) -> None:
        answer = await door.client.post("/v1/servers/compare")
        assert answer.status_code == 500
        assert problem(answer).reason is Reason.INTERNAL
        assert "Traceback" not in answer.text

    through(work)
    assert "KeyError" in caplog.text


def test_settings_are_read_changed_and_refused_whole() -> None:
    async def work(door: Door) -> None:
        answer = await door.client.put("/v1/settings", json={"values": {"endpoint.port": 9000}})
        assert answer.status_code == 200
        page = SettingPage.model_validate_json((await door.client.get("/v1/settings")).content)
        assert {one.name: one.value for one in page.settings}["endpoint.port"] == 9000
        assert door.changed == [("endpoint.port",)]
        answer = await door.client.put("/v1/settings", json={"values": {"endpoint.prot": 1}})
        assert (answer.status_code, problem(answer).reason) == (400, Reason.SETTING_INVALID)
        answer = await door.client.put("/v1/settings", json={"values": {}})
        assert answer.status_code == 400
        assert len(door.changed) == 1

    through(work)


def test_a_command_is_done_once_however_often_it_arrives() -> None:
    async def work(door: Door) -> None:
        headers = {"idempotency-key": "once"}
        answers = await asyncio.gather(
            *(door.client.post("/v1/servers/build", headers=headers) for _ in range(4))
        )
        jobs = {Job.model_validate_json(answer.content).id for answer in answers}
        assert len(jobs) == door.servers.asked == 1
        assert (await door.client.post("/v1/servers/build")).status_code == 202
        assert door.servers.asked == 2

    through(work)


def test_a_build_is_for_what_was_asked() -> None:
    async def work(door: Door) -> None:
        await door.client.post("/v1/servers/build")
        await door.client.post("/v1/servers/build", json={"backend": "vulkan"})
        assert door.servers.backends == [Backend.AUTO, Backend.VULKAN]
        refused = await door.client.post("/v1/servers/build", json={"backend": "metal"})
        assert refused.status_code == 400
        assert "backend" in refused.json()["error"]["message"]

    through(work)


def test_a_job_is_watched_and_cancelled() -> None:
    async def work(door: Door) -> None:
        job = Job.model_validate_json((await door.client.post("/v1/servers/build")).content)
        page = JobPage.model_validate_json((await door.client.get("/v1/jobs")).content)
        assert [one.id for one in page.jobs] == [job.id]
        assert (await door.client.delete(f"/v1/jobs/{job.id}")).status_code == 202
        await door.rig.jobs.ended(job.id)
        ended = Job.model_validate_json((await door.client.get(f"/v1/jobs/{job.id}")).content)
        assert ended.state is JobState.CANCELLED
        assert (await door.client.delete(f"/v1/jobs/{job.id}")).status_code == 202

    through(work)


@pytest.mark.parametrize(("limit", "count"), [("2", 2), ("0", 0), ("-3", 0), ("999999", 3)])
def test_log_lines_are_limited(limit: str, count: int) -> None:
    async def work(door: Door) -> None:
        door.rig.log_buffer.add("host", ["one", "two", "three"])
        answer = await door.client.get("/v1/logs", params={"limit": limit, "source": "host"})
        page = LogPage.model_validate_json(answer.content)
        assert len(page.lines) == count
        assert page.sources == ("host",)

    through(work)


def test_the_endpoint_is_behind_the_same_door() -> None:
    async def work(door: Door) -> None:
        answer = await door.client.get("/openai/v1/models")
        assert answer.status_code == 200
        assert "/v1/models" in answer.text

    through(work)


def test_quit_is_passed_on() -> None:
    async def work(door: Door) -> None:
        assert (await door.client.post("/v1/host/quit")).json() == {}
        assert door.quits == [True]

    through(work)
