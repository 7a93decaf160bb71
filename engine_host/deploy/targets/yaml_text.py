"""YAML that every reader reads alike, whether it speaks 1.1 or 1.2."""

import re
from collections.abc import Sequence
from typing import Any

import yaml

# Anything else is quoted: `no`, `1e3`, `0o17` and the like are words to one reader and numbers to another.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?:[ ][A-Za-z0-9_./-]+)*")
_WORDS = {"y", "yes", "n", "no", "true", "false", "on", "off", "null", "nan", "inf"}


# libyaml writes ten times as fast; it is in every wheel of PyYAML, and may be missing in a system's package.
class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        """Never an anchor: people read these files."""
        return True


def _text(dumper: _Dumper, text: str) -> Any:
    if "\n" in text:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def yaml_text(documents: Sequence[Any], comments: Sequence[str]) -> str:
    """The documents, in the order of their keys, below comments."""
    head = "".join(f"# {line}\n" for line in comments)
    parts = [
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100_000, allow_unicode=True)
        for document in documents
    ]
    return head + "---\n".join(parts)
