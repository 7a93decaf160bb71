"""Name the program that sent a request, from what its headers say of it."""

import contextlib
import re
from collections.abc import Mapping

from engine_host.core.visible import visible

_MOST = 60
_VERSION = re.compile(r"\A/?v?(\d+(?:\.\d+){0,3})")

# The first word of a User-Agent, without what follows its "/"; in lower case.
_AGENTS = {
    "claude-cli": "Claude Code",
    "claude-code": "Claude Code",
    "codex_cli_rs": "Codex",
    "codex_exec": "Codex",
    "codex-tui": "Codex",
    "codex_vscode": "Codex in VS Code",
    "opencode": "opencode",
    "zed": "Zed",
    "cline": "Cline",
    "roocode": "Roo Code",
    "roo-code": "Roo Code",
    "zoocode": "Zoo Code",
    "kilo-code": "Kilo Code",
    "continue": "Continue",
    "githubcopilotchat": "Copilot",
    "aider": "aider",
    "litellm": "LiteLLM",
    "ollama": "Ollama",
    "llm": "llm",
    "curl": "curl",
    "wget": "Wget",
    "python-httpx": "Python (httpx)",
    "python-requests": "Python (requests)",
    "python": "Python",
    "node": "Node",
    "mozilla": "a browser",
    "sndr": "sndr",
    "sndr-window": "Chat",
}
_SDKS = {
    "openai": "OpenAI SDK",
    "asyncopenai": "OpenAI SDK",
    "anthropic": "Anthropic SDK",
    "asyncanthropic": "Anthropic SDK",
}
_PROGRAMS = "|".join(
    map(re.escape, sorted({*_AGENTS.values(), *_SDKS.values(), "AI SDK"}, key=len, reverse=True))
)
_KNOWN = re.compile(rf"\A(?:{_PROGRAMS})(?: \d[\d.]{{0,19}})?(?=\Z| )")
# Vercel's SDK names itself after the program's own name.
_AI_SDK = re.compile(r"\bai-sdk/[a-z-]+/(\d[\d.]*)")


def client_name(headers: Mapping[str, str]) -> str:
    """Return a client's name with its version where it tells one; empty for a client that says nothing.

    Programs that stand before an SDK name themselves in `originator` (Codex) and `x-title` (Roo Code, Cline,
    aider); the SDKs of OpenAI and Anthropic name their language in `x-stainless-lang`.
    """
    agent = headers.get("user-agent", "").strip()
    word, _, rest = agent.partition("/")
    known = _AGENTS.get(headers.get("originator", "").strip().lower()) or _AGENTS.get(word.strip().lower())
    title = headers.get("x-title", "").strip()
    if known is None and title:
        return _plain(title)
    if known is not None:
        return f"{known} {version}" if (version := _version(rest)) and known != "a browser" else known
    sdk, _, tail = rest.partition(" ")
    if (name := _SDKS.get(word.lower())) is not None:
        language = headers.get("x-stainless-lang", "").strip() or sdk
        version = _version(tail) or _version(headers.get("x-stainless-package-version", ""))
        return _plain(" ".join(filter(None, (name, version, f"({language})" if language else ""))))
    if (found := _AI_SDK.search(agent)) is not None:
        return f"AI SDK {found[1][:20]}"
    return _plain(agent.split(" ")[0].replace("/", " ", 1))


def known_part(name: str) -> str:
    """Return what of a client's name is no word of its own: a known program with its version, or nothing.

    What a header says beside that may be anything, and is not written to the disk.
    """
    found = _KNOWN.match(name)
    return found[0] if found is not None else ""


def _version(text: str) -> str:
    found = _VERSION.match(text.strip())
    return found[1][:20] if found is not None else ""


def _plain(text: str) -> str:
    # HTTP's headers are read as Latin-1; who writes a name with other letters writes UTF-8.
    with contextlib.suppress(UnicodeError):
        text = text.encode("latin-1").decode()
    return visible(" ".join(text.split()))[:_MOST]
