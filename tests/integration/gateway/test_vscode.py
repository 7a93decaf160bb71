"""VS Code's own code reads the endpoint's chats: the part of its chat that it publishes.

It is no part of this program: `npm install --ignore-scripts --prefix FOLDER @vscode/chat-lib`, and
FOLDER/node_modules/.bin in PATH, with node. The editor around it is not run.
"""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine_host.connect.clients.table import client_named
from engine_host.connect.facts import Facts
from tests.integration.gateway.demo import CITY, DEMO, MODEL, QUESTION

READER = Path(__file__).parent / "vscode_reader.js"
TOOL = {"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": CITY}}
# As it asks a model of the settings: no length, its figures at the end.
BASE = {"model": MODEL, "stream": True, "n": 1, "temperature": 0, "stream_options": {"include_usage": True}}
HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hi"}]
ASKED = [{"role": "user", "content": QUESTION}]


def library() -> Path:
    """The folder of the package; the test is skipped where there is none."""
    folders = [Path(one).parent for one in os.environ["PATH"].split(os.pathsep) if one.endswith(".bin")]
    found = next((one for one in folders if (one / "@vscode/chat-lib/package.json").is_file()), None)
    if found is None or shutil.which("node") is None:
        pytest.skip("@vscode/chat-lib is not installed; it is no part of this program")
    return found / "@vscode/chat-lib"


async def read(folder: Path, url: str, bodies: list[dict[str, Any]]) -> dict[str, Any]:
    """What VS Code's code makes of the answers."""
    node = shutil.which("node") or "node"
    process = await asyncio.create_subprocess_exec(
        *(node, str(READER), str(folder), url, json.dumps(bodies)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, error.decode()[-2000:]
    told: dict[str, Any] = json.loads(out)
    return told


def test_it_reads_texts_calls_and_refusals(real: Any) -> None:
    folder = library()

    async def go() -> None:
        async with real(model=DEMO, slots=1) as served:
            bodies: list[dict[str, Any]] = [
                {**BASE, "messages": HELLO},
                {**BASE, "messages": ASKED, "tools": [TOOL]},
                {**BASE, "messages": [{"role": "user", "content": "hello " * 5000}]},
            ]
            told = await read(folder, served.url, bodies)
            assert told["problems"] == []
            text, call, long = told["answers"]
            assert (text["reason"], text["text"][:5]) == ("stop", "Hello")
            assert text["usage"]["completion_tokens"] > 1
            assert call["reason"] == "tool_calls"
            assert [(one["name"], json.loads(one["arguments"])) for one in call["calls"]] == [
                ("weather", {"city": "Paris"})
            ]
            assert (long["status"], long["error"]["code"]) == (400, "context_length_exceeded")

    asyncio.run(go())


def test_what_is_written_for_it_has_the_fields_that_its_manifest_wants() -> None:
    manifest = json.loads((library() / "dist/src/package.json").read_text())
    providers = manifest["contributes"]["languageModelChatProviders"]
    (wanted,) = [one["configuration"] for one in providers if one["vendor"] == "customendpoint"]
    facts = Facts("http://127.0.0.1:8020/v1", "demo", 8192, key_needed=False)
    (file,) = client_named("vscode").files
    (group,) = file.wanted(facts)
    assert set(group) - {"name", "vendor"} <= set(wanted["properties"])
    assert group["apiType"] in wanted["properties"]["apiType"]["enum"]
    model = wanted["properties"]["models"]["items"]
    (one,) = group["models"]
    assert set(model["required"]) <= set(one) <= set(model["properties"])
    assert any(set(way["required"]) <= set(one) for way in model["anyOf"])
