"""Fit of a model on Hugging Face: refused until somebody asks for its config, computed from it afterwards."""

import json

import pytest

from engine_host.core.package_data import resources
from engine_host.protocol.errors import ErrorAnswer, Reason
from engine_host.protocol.launch.fit import FitReport, HubModel, HubPage
from tests.unit.api.door import door
from tests.unit.asynchronous import run
from tests.unit.library.fake_hub import COMMIT, fake_hub

pytestmark = pytest.mark.usefixtures("home")
CONFIG = json.loads((resources() / "models" / "sndr-demo" / "config.json").read_text(encoding="utf-8"))


def test_nothing_is_asked_of_the_hub_but_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        with fake_hub() as served:
            monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
            served.models["org/name"] = (CONFIG, {"model.safetensors": 9_000_000})
            async with door() as opened:
                answer = await opened.client.post("/v1/fit", json={"model": "org/name"})
                problem = ErrorAnswer.model_validate_json(answer.text).error
                assert problem.reason is Reason.MODEL_FILE_MISSING
                assert problem.fix is not None
                assert problem.fix.command == "sndr fit org/name --online"
                page = HubPage.model_validate_json((await opened.client.get("/v1/fit/hub")).text)
                assert (page.endpoint, page.models) == (served.endpoint, ())
                assert served.requests == []

                answer = await opened.client.post("/v1/fit/hub", json={"repository": "org/name"})
                read = HubModel.model_validate_json(answer.text)
                assert (read.model, read.size) == (f"org/name@{COMMIT}", 9_000_000)
                requests = len(served.requests)
                for name in ("org/name", read.model):
                    body = {"model": name, "hardware": "2x rtx-3090", "context": 1024}
                    answer = await opened.client.post("/v1/fit", json=body)
                    report = FitReport.model_validate_json(answer.text)
                    assert report.model == f"org/name@{COMMIT[:8]}"
                    weights = sum(part.size for part in report.devices[0].parts if part.name == "weights")
                    assert 2 * weights == pytest.approx(9_000_000, rel=0.5)
                assert len(served.requests) == requests
                page = HubPage.model_validate_json((await opened.client.get("/v1/fit/hub")).text)
                assert page.models == (read,)
                answer = await opened.client.post("/v1/fit/hub", json={"repository": "org/none"})
                assert ErrorAnswer.model_validate_json(answer.text).error.reason is Reason.NOT_FOUND

    run(test())
