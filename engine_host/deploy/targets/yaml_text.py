"""YAML that every reader reads alike, whether it speaks 1.1 or 1.2."""

import io
import re
from collections.abc import Sequence
from typing import Any

# Anything else is quoted: `no`, `1e3`, `0o17` and the like are words to one reader and numbers to another.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?:[ ][A-Za-z0-9_./-]+)*")
_WORDS = {"y", "yes", "n", "no", "true", "false", "on", "off", "null", "nan", "inf"}


def yaml_text(documents: Sequence[Any], comments: Sequence[str]) -> str:
    """The documents, in the order of their keys, below comments."""
    # The library takes a tenth of a second to import, for which no start of the host waits.
    from ruamel.yaml import YAML
    from ruamel.yaml.representer import SafeRepresenter

    class Representer(SafeRepresenter):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            """Never an anchor: people read these files."""
            return True

    Representer.add_representer(str, _text)
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer, yaml.default_flow_style, yaml.width = Representer, False, 100_000
    yaml.sort_base_mapping_type_on_output = False
    written = io.StringIO()
    yaml.dump_all(documents, written)
    return "".join(f"# {line}\n" for line in comments) + written.getvalue()


def _text(representer: Any, text: str) -> Any:
    if "\n" in text:
        return representer.represent_scalar("tag:yaml.org,2002:str", text, style="|")
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')
