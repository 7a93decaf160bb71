"""The patches' routes: the built-in catalogue, preflight, switches, plans, what engines say of patches."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.overlay.patch_catalog import BUILT_IN
from engine_host.protocol.errors import ErrorAnswer, Reason
from engine_host.protocol.events import EVENT, PatchesChangedEvent
from engine_host.protocol.patches import CheckPage, CheckVerdict, PatchDetail, PatchPage
from tests.unit.api.door import Door, door
from tests.unit.asynchronous import run

pytestmark = pytest.mark.usefixtures("home")
ONE = "json-whitespace-limit"


def through(work: Callable[[Door], Coroutine[Any, Any, None]]) -> None:
    async def act() -> None:
        async with door() as opened:
            await work(opened)

    run(act())


def reason(answer: httpx.Response) -> Reason:
    return ErrorAnswer.model_validate_json(answer.content).error.reason


def empty_vllm(place: Path) -> Path:
    """A folder as site-packages is, with a FAKE vLLM that has no modules."""
    (place / "vllm").mkdir()
    metadata = place / "vllm-0.32.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Name: vllm\nVersion: 0.32.0\n")
    return place


def test_the_catalogue_is_all_that_is_built_in() -> None:
    async def work(door: Door) -> None:
        page = PatchPage.model_validate_json((await door.client.get("/v1/patches")).content)
        assert {patch.id for patch in page.patches} == {
            path.parent.name for path in BUILT_IN.glob("*/patch.toml")
        }
        assert page.faults == ()

    through(work)


def test_one_patch_without_a_vllm_and_in_one(tmp_path: Path) -> None:
    place = empty_vllm(tmp_path)

    async def work(door: Door) -> None:
        bare = PatchDetail.model_validate_json((await door.client.get(f"/v1/patches/{ONE}")).content)
        assert (bare.patch.id, bare.vllm, bare.check) == (ONE, None, None)
        assert all(operation.diff for operation in bare.operations)
        there = await door.client.get(f"/v1/patches/{ONE}", params={"vllm": str(place)})
        detail = PatchDetail.model_validate_json(there.content)
        assert detail.vllm == "0.32.0"
        assert detail.check is not None
        assert detail.check.verdict is CheckVerdict.TARGET_MISSING

    through(work)


def test_preflight_of_a_folder(tmp_path: Path) -> None:
    place = empty_vllm(tmp_path)

    async def work(door: Door) -> None:
        answer = await door.client.get("/v1/patches/check", params={"vllm": str(place)})
        page = CheckPage.model_validate_json(answer.content)
        assert (page.vllm, page.source) == ("0.32.0", str(place))
        assert {check.verdict for check in page.checks} <= {
            CheckVerdict.TARGET_MISSING,
            CheckVerdict.OUT_OF_RANGE,
            CheckVerdict.APPLIES,
        }

    through(work)


def test_a_switch_is_saved_told_and_shown() -> None:
    async def work(door: Door) -> None:
        answer = await door.client.post("/v1/patches/switch", json={"names": [ONE], "to": "off"})
        page = PatchPage.model_validate_json(answer.content)
        assert [patch.id for patch in page.patches if patch.switch == "off" and patch.default] == [ONE]
        assert door.settings.current.patches.off == (ONE,)
        assert door.changed == [("patches.off",)]
        assert page.seq == door.events.seq
        read = door.events.read(after=0)
        assert isinstance(EVENT.validate_json((await anext(read)).data), PatchesChangedEvent)
        await read.aclose()  # type: ignore[attr-defined]

    through(work)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/v1/patches/nothing", None, 404, Reason.PATCH_UNKNOWN),
        ("GET", f"/v1/patches/{ONE}?vllm=0.32.0", None, 404, Reason.NOT_FOUND),
        ("GET", "/v1/patches/check", None, 404, Reason.NOT_FOUND),
        ("GET", "/v1/patches/check?vllm=/nowhere", None, 404, Reason.NOT_FOUND),
        ("GET", "/v1/patches/check?vllm=/nowhere.whl", None, 404, Reason.NOT_FOUND),
        ("GET", "/v1/patches/check?vllm=9.9", None, 404, Reason.NOT_FOUND),
        ("POST", "/v1/patches/switch", {"names": ["nothing"], "to": "off"}, 404, Reason.PATCH_UNKNOWN),
        ("POST", "/v1/patches/switch", {"names": [ONE], "to": "away"}, 400, Reason.BAD_REQUEST),
        ("POST", "/v1/patches/switch", {"name": ONE, "to": "on"}, 400, Reason.BAD_REQUEST),
        ("POST", "/v1/patches/plan", {"model": "m", "engine": "vllm"}, 404, Reason.MODEL_FILE_MISSING),
        ("POST", "/v1/patches/plan", {}, 400, Reason.BAD_REQUEST),
        (
            "POST",
            "/v1/patches/bisect",
            {"launch": {"model": "m"}, "check": {"builtin": "starts"}},
            404,
            Reason.MODEL_FILE_MISSING,
        ),
        ("POST", "/v1/patches/bisect", {"launch": {"model": "m"}, "check": {}}, 400, Reason.BAD_REQUEST),
        (
            "POST",
            "/v1/patches/bisect",
            {"launch": {"model": "m"}, "check": {"command": ["/no/such/program"], "folder": "/"}},
            400,
            Reason.BAD_REQUEST,
        ),
        ("GET", "/v1/engines/engine-x/patches", None, 404, Reason.NOT_FOUND),
        ("POST", "/v1/engines/engine-x/patches/probe", None, 404, Reason.NOT_FOUND),
        ("POST", f"/v1/engines/engine-x/patches/{ONE}/start-without", None, 404, Reason.NOT_FOUND),
        ("PUT", "/v1/patches/check", None, 405, Reason.UNSUPPORTED),
    ],
)
def test_every_refusal_has_its_reason(
    method: str, path: str, body: dict[str, Any] | None, status: int, said: Reason
) -> None:
    async def work(door: Door) -> None:
        answer = await door.client.request(method, path, json=body)
        assert (answer.status_code, reason(answer)) == (status, said)
        assert door.changed == []
        assert door.rig.jobs.all() == []

    through(work)
