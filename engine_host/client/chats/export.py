"""A conversation as Markdown to read, or as JSON with everything that is known of it."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from engine_host.client.chats.record import Conversation, Lane, Turn
from engine_host.client.chats.sampling import SAMPLING, spelled
from engine_host.core import atomic_file
from engine_host.core.sizes import duration
from engine_host.core.visible import visible

_FENCE = re.compile(r"`{3,}")


def as_json(conversation: Conversation) -> str:
    """Return all of it, branches that are not shown too."""
    return json.dumps(conversation.model_dump(mode="json"), ensure_ascii=False, indent=2) + "\n"


def as_markdown(conversation: Conversation) -> str:
    """Return the messages that are shown, each model's under its own heading where there are two."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(conversation.created))
    lines = [f"# {conversation.title or 'Conversation'}", "", f"*{when}*", ""]
    if conversation.system.strip():
        lines += ["## System prompt", "", conversation.system.strip(), ""]
    asked = [
        f"{one.caption} {spelled(conversation.sampling[one.name])}"
        for one in SAMPLING
        if one.name in conversation.sampling
    ]
    if asked:
        lines += [f"*{', '.join(asked)}*", ""]
    several = len(conversation.lanes) > 1
    for lane in conversation.lanes:
        if several:
            lines += [f"# {lane.engine or 'A model'}", ""]
        lines += _lane(lane)
    return visible("\n".join(lines)).rstrip() + "\n"


def write(path: Path, text: str) -> None:
    """Write an export for its owner alone, beside the file and renamed. Raises HostError."""
    atomic_file.write(Path(os.path.abspath(path)), text.encode("utf-8", "replace"), 0o600)


def figures(turn: Turn) -> str:
    """Return what was measured of an answer in one line; empty where nothing was."""
    measured = turn.measured
    parts = [turn.engine]
    if measured.ttft is not None:
        parts.append(f"first token after {duration(measured.ttft)} (client)")
    if measured.rate is not None:
        parts.append(f"{measured.rate:.1f} tok/s")
    if measured.tokens is not None:
        parts.append(f"{measured.tokens} tokens")
    if measured.prompt_tokens is not None:
        parts.append(f"{measured.prompt_tokens} prompt tokens")
    if measured.draft_tokens and measured.draft_accepted is not None:
        parts.append(f"{measured.draft_accepted} of {measured.draft_tokens} draft tokens accepted")
    if turn.state != "done":
        parts.append(turn.state)
    return " · ".join(part for part in parts if part)


def _lane(lane: Lane) -> Iterator[str]:
    for turn in lane.shown():
        yield from ("## You" if turn.role == "user" else "## Answer", "")
        if turn.reasoning.strip():
            yield from ("<details><summary>Reasoning</summary>", "")
            yield from (_fenced(turn.reasoning.strip(), ""), "", "</details>", "")
        if turn.text.strip():
            yield from (turn.text.strip(), "")
        for call in turn.calls:
            yield from (f"Tool call: {call.name}", "", _fenced(call.arguments, "json"), "")
        if turn.error:
            yield from (f"*Failed: {turn.error}*", "")
        if turn.role == "assistant" and (said := figures(turn)):
            yield from (f"*{said}*", "")


def _fenced(text: str, language: str) -> str:
    longest = max((len(mark) for mark in _FENCE.findall(text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}{language}\n{text}\n{mark}"
