"""A host of a version that cannot tell everything is shown with what it tells."""

from pathlib import Path

from engine_host.protocol.errors import Problem, Reason
from sndr_gui.host.connection import Phase
from sndr_gui.host.notices import Notice
from tests.views.conftest import opened

# What a host of 0.2.0 does not serve, of that which the window reads as soon as it is joined.
UNSERVED = ("/v1/on-demand", "/v1/requests", "/v1/hosts", "/v1/hosts/questions", "/v1/telemetry/marks")


async def test_a_host_that_does_not_know_a_part_tells_the_rest(tmp_path: Path) -> None:
    async with opened(tmp_path, connect=False) as stage:
        said: list[Notice] = []
        stage.notices.posted.connect(said.append)
        for path in UNSERVED:
            message = f"The engine host has nothing that answers GET {path}."
            stage.host.refuse[path] = Problem(reason=Reason.UNSUPPORTED, message=message)
        await stage.host.start()
        stage.connection.retry()
        await stage.until(lambda: stage.connection.phase is Phase.CONNECTED)
        assert stage.state.models is not None
        assert said == []
        stage.host.faults.clear()  # No host of this version refuses so.
