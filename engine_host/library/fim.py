"""The tokens that a tokenizer has for filling in the middle, as text."""

from dataclasses import dataclass
from pathlib import Path

from engine_host.core.outside import files

_LONGEST = 64 << 20
# Prefix, suffix, middle, in the order in which the prompt is put together.
_KNOWN = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
)


@dataclass(frozen=True, slots=True)
class FimTokens:
    """A model's own tokens around what is before the gap and what is after it."""

    prefix: str
    suffix: str
    middle: str


def fim_tokens(tokenizer: Path) -> FimTokens | None:
    """The tokens in a `tokenizer.json`; None where it has none or is not there.

    The file is searched, not parsed: parsing one of 30 MB takes half a second.
    """
    try:
        content = files.read(tokenizer, _LONGEST)
    except OSError:
        return None
    for tokens in _KNOWN:
        if all(_holds(content, token) for token in tokens):
            return FimTokens(*tokens)
    return None


def _holds(content: bytes, token: str) -> bool:
    escaped = "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in token)
    return f'"{token}"'.encode() in content or f'"{escaped}"'.encode() in content
