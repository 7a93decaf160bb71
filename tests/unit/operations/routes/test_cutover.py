"""A cut-over that cannot begin: told in words that harm nothing when they are followed."""

import asyncio
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.operations.routes.cutover import CutOverOperations
from engine_host.protocol.endpoint.routes import Provider, RouteTargets
from engine_host.protocol.errors import Reason


def test_a_failed_cut_over_leaves_a_route_that_was_remade_meanwhile(world: Any, scripts: Any) -> None:
    """The engine answers no chat; while it is asked, somebody makes the route anew."""

    async def go() -> None:
        async with world(scripts.answers(500, b'{"error": {"message": "no"}}')) as served:
            served.routes.put("coder", RouteTargets(engines=("old",)))
            jobs = JobRunner(EventLog().publish, served.store)
            operations = CutOverOperations(served.routes, served.gateway, jobs, lambda: None)
            job = await operations.start("coder", RouteTargets(engines=("m",)))
            served.routes.remove("coder")
            remade = served.routes.put("coder", RouteTargets(engines=("other",)))
            done = await jobs.ended(job.id)
            assert done.error is not None
            assert served.routes.get("coder") == remade
            assert served.routes.find("coder") == remade
            assert "leads where it led" not in done.error.sentence(), "it leads elsewhere by now"

    asyncio.run(go())


def test_what_is_to_be_allowed_is_the_new_provider_alone(world: Any) -> None:
    old = Provider(url="https://old.example/v1", model="m", context=4096)
    new = old.model_copy(update={"url": "https://new.example/v1"})

    async def go() -> None:
        async with world() as served:
            route = served.routes.put("coder", RouteTargets(provider=old))
            served.routes.attempt("trial", RouteTargets(provider=new))
            jobs = JobRunner(EventLog().publish, served.store)
            operations = CutOverOperations(served.routes, served.gateway, jobs, lambda: None)
            with pytest.raises(HostError) as refused:
                operations._staged(route, "trial")
            problem = refused.value.problem
            assert problem.reason is Reason.REMOTE_NOT_ALLOWED
            assert "routes set" not in problem.sentence(), "it would allow the old one"
            assert "--allow-remote" in problem.sentence()

    asyncio.run(go())
