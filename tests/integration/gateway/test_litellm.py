"""litellm through the forms of three others, against a real llama.cpp server through the gateway."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.integration.gateway.clients import run_client
from tests.integration.gateway.demo import CITY, DEMO, MODEL, QUESTION

SCRIPT = """
import json, sys
import litellm

litellm.telemetry, litellm.suppress_debug_info, litellm.num_retries = False, True, 0
url, name, question, tool = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
root = url.removesuffix("/v1")
found = {}
for prefix, base in (("openai", url), ("anthropic", root), ("ollama_chat", root)):
    asked = {"model": f"{prefix}/{name}", "api_base": base, "api_key": "sk-local", "temperature": 0}
    hello = [{"role": "user", "content": "Say hi"}]
    whole = litellm.completion(messages=hello, max_tokens=8, **asked)
    parts = list(litellm.completion(messages=hello, max_tokens=8, stream=True, **asked))
    called = litellm.completion(
        messages=[{"role": "user", "content": question}], tools=[tool], max_tokens=200, **asked
    )
    try:
        litellm.completion(messages=hello, **{**asked, "model": f"{prefix}/nobody"})
        refused = "nothing"
    except Exception as error:
        refused = f"{type(error).__name__} {getattr(error, 'status_code', None)}"
    calls = called.choices[0].message.tool_calls or []
    found[prefix] = {
        "text": whole.choices[0].message.content,
        "finish": whole.choices[0].finish_reason,
        "tokens": whole.usage.completion_tokens,
        "stream": "".join(part.choices[0].delta.content or "" for part in parts if part.choices),
        "calls": [[call.function.name, json.loads(call.function.arguments)] for call in calls],
        "refused": refused,
    }
print(json.dumps(found))
"""
TOOL = {"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": CITY}}


def test_three_prefixes_chat_stream_and_call(real: Any, tmp_path: Path) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served:
            words = ("-I", "-c", SCRIPT, served.url, MODEL, QUESTION, json.dumps(TOOL))
            code, out, error = await run_client("python", *words, folder=tmp_path)
        assert code == 0, error[-3_000:]
        found = json.loads(out.splitlines()[-1])
        assert set(found) == {"openai", "anthropic", "ollama_chat"}
        for prefix, one in found.items():
            assert one["text"], prefix
            assert one["stream"] == one["text"], prefix
            assert (one["finish"], one["tokens"]) == ("length", 8), prefix
            assert one["calls"] == [["weather", {"city": "Paris"}]], prefix
            assert "NotFound" in one["refused"] or "404" in one["refused"], (prefix, one["refused"])

    asyncio.run(go())
