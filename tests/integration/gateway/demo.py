"""The demo model, which answers in words and calls tools, and the clients that ask it."""

from pathlib import Path
from typing import Any

import anthropic
import openai

from engine_host.core.package_data import resources

DEMO: Path = next((resources() / "models").rglob("*.gguf"))
MODEL = "demo"
QUESTION = "What is the weather in Paris?"
CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def openai_client(url: str) -> Any:
    """The client as a program would make it; untyped, since what is sent is not always what it knows."""
    return openai.AsyncOpenAI(base_url=url, api_key="sk-local", max_retries=0, timeout=60)


def anthropic_client(url: str, retries: int = 0) -> Any:
    """The same of Anthropic's; its base has no version in it."""
    base = url.removesuffix("/v1")
    return anthropic.AsyncAnthropic(base_url=base, api_key="sk-local", max_retries=retries, timeout=60)
