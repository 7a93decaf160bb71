"""Schemathesis over the endpoint's own OpenAPI document, with a real llama.cpp server behind it."""

import asyncio
from pathlib import Path
from typing import Any

from tests.hostile import asked
from tests.integration.gateway.clients import run_client
from tests.integration.gateway.demo import DEMO

EXAMPLES = 12
"""For each route; what fails is made smaller by the tool and printed with its request."""


def test_no_request_by_the_document_gets_a_server_error(real: Any, tmp_path: Path) -> None:
    async def go() -> None:
        # A short context ends each answer soon: what is asked for may be as long as it likes.
        async with real(model=DEMO, slots=4, context=256) as served:
            root = served.url.removesuffix("/v1")
            code, out, error = await run_client(
                *("st", "run", f"{root}/openapi.json", "--url", root),
                *("--checks", "not_a_server_error,status_code_conformance,content_type_conformance"),
                *("--max-examples", str(EXAMPLES), "--seed", str(asked.fuzz_seed()), "--phases", "fuzzing"),
                *("--request-timeout", "60", "--continue-on-failure"),
                folder=tmp_path,
            )
            assert code == 0, f"{out[-6_000:]}\n{error[-2_000:]}"

    asyncio.run(go())
