"""Complete an answer in the Responses form with what llama.cpp leaves out of it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from engine_host.gateway.responses.namespaces import groups

_ECHOED = (
    "instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "temperature", "text",
    "tool_choice", "tools", "top_p", "user",
)  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """The fields of an answer that are known before the engine begins.

    `request` is the client's own, `context` the tokens that prompt and answer may have together.
    """

    id: str
    model: str
    created_at: int
    request: dict[str, Any] = field(default_factory=dict)
    context: int = 0

    def begun(self) -> dict[str, Any]:
        """Return the answer before anything is written."""
        echoed = {name: self.request.get(name) for name in _ECHOED}
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": [],
            "previous_response_id": None,
            "reasoning": self.request.get("reasoning") or {"effort": None, "summary": None},
            "store": False,
            "truncation": "disabled",
            "usage": None,
            **echoed,
            "metadata": echoed["metadata"] or {},
            "parallel_tool_calls": echoed["parallel_tool_calls"] is not False,
            "text": echoed["text"] or {"format": {"type": "text"}},
            "tool_choice": echoed["tool_choice"] or "auto",
            "tools": echoed["tools"] or [],
        }

    def ended(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the whole answer, with the end that it had: the engine calls every answer complete."""
        output = answer.get("output")
        items = [self.item(item) for item in output] if isinstance(output, list) else []
        usage = answer.get("usage")
        usage = _whole_usage(usage, items) if isinstance(usage, dict) else None
        whole = {**self.begun(), **answer, "output": items, "usage": usage, "status": "completed"}
        cut_off = answer.get("status") == "incomplete" or (usage is not None and self._is_cut_off(usage))
        if cut_off:
            whole |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        if whole["error"]:
            whole["status"] = "failed"
        return whole

    def item(self, item: Any) -> Any:
        """Return an item of the output with the fields and names that its clients know."""
        whole = whole_item(item)
        if not isinstance(whole, dict) or whole.get("type") != "function_call":
            return whole
        name = whole.get("name")
        group = self._groups.get(name) if isinstance(name, str) else None
        return whole if group is None else {**whole, "namespace": group[0], "name": group[1]}

    @cached_property
    def _groups(self) -> dict[str, tuple[str, str]]:
        return groups(self.request.get("tools"))

    def _is_cut_off(self, usage: dict[str, Any]) -> bool:
        most = self.request.get("max_output_tokens")
        written, all_told = _count(usage.get("output_tokens")), _count(usage.get("total_tokens"))
        at_limit = isinstance(most, int) and not isinstance(most, bool) and 0 < most <= written
        return at_limit or 0 < self.context <= all_told


def whole_item(item: Any) -> Any:
    """Return an item of the output with the fields that its clients read."""
    if not isinstance(item, dict):
        return item
    if item.get("type") == "message" and isinstance(item.get("content"), list):
        return {"role": "assistant", **item, "content": [whole_part(part) for part in item["content"]]}
    if item.get("type") == "reasoning":
        return {"status": "completed", **item, "encrypted_content": item.get("encrypted_content") or None}
    return item


def whole_part(part: Any) -> Any:
    """Return a part of a message with the fields that its clients read."""
    if isinstance(part, dict) and part.get("type") == "output_text":
        return {"annotations": [], "logprobs": [], **part}
    return part


def _whole_usage(usage: dict[str, Any], items: list[Any]) -> dict[str, Any]:
    whole = {"input_tokens_details": {"cached_tokens": 0}, **usage}
    if not any(isinstance(item, dict) and item.get("type") == "reasoning" for item in items):
        whole.setdefault("output_tokens_details", {"reasoning_tokens": 0})
    return whole


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
