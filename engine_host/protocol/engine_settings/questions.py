"""The settings of a start as the fields of a question to fit (`FitRequest`), and the other way round.

Which setting is which field stands in the table, in `fit` of its row.
"""

import json
from collections.abc import Mapping
from typing import Any

from engine_host.protocol.engine_settings.row import LLAMA_CPP, OFF, VLLM
from engine_host.protocol.engine_settings.table import settings_of

# An engine's word for a model that drafts with layers of its own.
DRAFTS_ITSELF = {VLLM: "mtp", LLAMA_CPP: "draft-mtp"}
# A question takes no more of them.
_MOST_DRAFTS = 64


def question_of(engine: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a question that these settings of an engine answer; None answers none."""
    found: dict[str, Any] = {}
    for row in settings_of(engine):
        value = values.get(row.name)
        if not row.fit or value is None or value == "":
            continue
        found[row.fit[-1]] = tuple(value) if isinstance(value, list) else value
    if values.get("reranking"):
        # The memory of scores is that of vectors.
        found["embeddings"] = True
    if "speculation" in found:
        said = str(found["speculation"])
        found["speculation"] = drafts_itself(said)
        if (drafts := _config(said).get("num_speculative_tokens")) and isinstance(drafts, int):
            found["draft_tokens"] = min(max(drafts, 1), _MOST_DRAFTS)
    return found


def settings_asked(engine: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an engine that the fields of a question set; a field of None sets none."""
    found: dict[str, Any] = {}
    for row in settings_of(engine):
        for field in row.fit:
            if (value := asked.get(field)) is not None:
                found[row.name] = value
    if "speculation" in found:
        found["speculation"] = DRAFTS_ITSELF.get(engine, OFF) if found["speculation"] else OFF
    return found


def drafts_itself(speculation: str) -> bool:
    """Return True where a model drafts with layers of its own, also where vLLM's JSON says so."""
    return "mtp" in str(_config(speculation).get("method", speculation))


def _config(speculation: str) -> Mapping[str, Any]:
    """The object of vLLM's --speculative-config; what is none is reported by who starts it."""
    if not speculation.startswith("{"):
        return {}
    try:
        found = json.loads(speculation)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
