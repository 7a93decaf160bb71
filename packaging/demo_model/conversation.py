"""Turn conversations into weighted pieces of text, exactly as ``chat_template.jinja`` writes them."""

from __future__ import annotations

import json
import random
from typing import Any

Message = dict[str, Any]
Piece = tuple[str, int]
"""A text and its weight class: 0 is not learned, 1 a little (questions), 2 fully, 3 by half (raw text)."""

SYSTEM_PROMPTS: tuple[str, ...] = (
    "You are a helpful assistant.",
    "You are the SNDR demo model.",
    "You are SNDR demo model, a small demonstration model.",
    "You are a helpful assistant. Answer briefly.",
    "You are a Python expert. Answer the user's questions.",
    "You are a friendly assistant that helps with Python.",
    "Answer in one or two sentences.",
    "Be brief.",
    "Be concise and precise.",
    "You are a coding assistant.",
    "You are a careful assistant. If you do not know something, say so.",
    "You are a helpful AI assistant running on the user's own computer.",
    "Please answer in English.",
    "Help the user. Use the tools when they are useful.",
    "You are an assistant with access to tools.",
)


def system_prompt(rng: random.Random, sentences: list[str]) -> str:
    """Return a system prompt or nothing; some are `sentences` at random, so that any prompt is borne."""
    draw = rng.random()
    if draw < 0.5:
        return ""
    if draw < 0.85 or not sentences:
        return rng.choice(SYSTEM_PROMPTS)
    extra = " ".join(rng.choice(sentences) for _ in range(rng.randint(1, 3)))
    return rng.choice([extra, rng.choice(SYSTEM_PROMPTS) + " " + extra])


def call_text(call: Message) -> str:
    """Return one tool call in Qwen3.5's format."""
    lines = [f"<tool_call>\n<function={call['name']}>\n"]
    for name, value in call["arguments"].items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"<parameter={name}>\n{shown}\n</parameter>\n")
    return "".join(lines) + "</function>\n</tool_call>"


def render(messages: list[Message], tools: list[Message] | None = None, system: str = "") -> list[Piece]:
    """Return the pieces of one conversation; assistant turns weigh fully."""
    pieces: list[Piece] = []
    if tools:
        listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        tail = f"\n\n{system}" if system else ""
        pieces.append((f"<|im_start|>system\n# Tools\n\n<tools>\n{listed}\n</tools>{tail}<|im_end|>\n", 0))
    elif system:
        pieces.append((f"<|im_start|>system\n{system}<|im_end|>\n", 0))
    for message in messages:
        role, content = message["role"], message.get("content") or ""
        if role == "tool":
            pieces.append((f"<|im_start|>user\n<tool_response>\n{content}\n</tool_response><|im_end|>\n", 0))
        elif role == "assistant":
            calls = "\n".join(call_text(c) for c in message.get("tool_calls", ()))
            joined = content + ("\n" if content and calls else "") + calls
            pieces.append(("<|im_start|>assistant\n", 0))
            pieces.append((joined + "<|im_end|>", 2))
            pieces.append(("\n", 0))
        else:
            pieces.append((f"<|im_start|>{role}\n{content}<|im_end|>\n", 1))
    return pieces


def chat(pairs: list[tuple[str, str]], system: str = "", tools: list[Message] | None = None) -> list[Piece]:
    """Return a conversation of questions and answers."""
    messages: list[Message] = []
    for question, answer in pairs:
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return render(messages, tools, system)
