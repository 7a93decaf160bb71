"""The messages of each request: a question behind its salt, a text of an exact length, an agent's turn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from engine_host.bench.checks.tools import tool
from engine_host.bench.lab.arrivals import Planned
from engine_host.bench.lab.load import Message
from engine_host.bench.lab.texts import Texts
from engine_host.bench.lab.workloads import Part, prompt, salt

_TOOLS = (
    tool("read_file", "Read a file of the project", path="string"),
    tool("edit_file", "Replace a text in a file", path="string", old="string", new="string"),
    tool("run_tests", "Run the tests and return what they print", path="string"),
)
_AGENT = (
    "You are an agent that works on a project of Python. Read what you need with the tools, one call at a "
    "time, and say in the end what you found."
)
_TASK = "Find out why the test of the archive fails, file by file, and mend it."
_DEPTHS = (0.5, 0.1, 0.9, 0.3, 0.7)


@dataclass(frozen=True)
class Prepared:
    """A request that is ready to be sent; `aimed` are the tokens that its prompt was made to have."""

    salt: str
    messages: tuple[Message, ...]
    max_tokens: int
    aimed: int | None = None
    fact: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


class Asking:
    """Prepares the requests of a run; nothing of it is timed."""

    def __init__(
        self, client: httpx.AsyncClient, model: str, seed: int, *, again: int = 0, tools: bool = True
    ) -> None:
        """`again` counts how often the run was gone on with after it was cut short."""
        self._texts = Texts(client, model)
        self._seed = seed
        self._again = again
        self._tools = tools
        self._results: dict[tuple[int, int], str] = {}

    async def prepare(self, part: Part, planned: Planned, number: int, turn: int, place: int) -> Prepared:
        """Return request `number` of a part, in its round `turn`; `place` is that of the part."""
        if part.turn:
            return await self._turn(part, turn)
        salted = self._salt(part.name, number)
        if planned.tokens is None:
            text = ({"role": "user", "content": prompt(part, salted)},)
            return Prepared(salted, text, planned.max_tokens)
        if planned.head:
            head = self._salt(part.name, -1)
            made = await self._texts.headed(head, salted, part.question, planned.tokens, planned.head)
        else:
            depth = _DEPTHS[place % len(_DEPTHS)] if part.fact else None
            made = await self._texts.text(salted, part.question, planned.tokens, depth=depth)
        return Prepared(
            salted,
            ({"role": "user", "content": made.content},),
            planned.max_tokens,
            planned.tokens,
            made.fact,
        )

    def _salt(self, part: str, number: int) -> str:
        return salt(self._seed, part, number, self._again)

    async def _turn(self, part: Part, turn: int) -> Prepared:
        """Return a turn of an agent: the calls before it with their results, each `tokens` long.

        The calls are ours, and not what the model answered: so every engine reads the same.
        """
        salted = self._salt("conversation", turn)
        messages: list[Message] = [
            {"role": "system", "content": f"[{salted}]\n{_AGENT}"},
            {"role": "user", "content": _TASK},
        ]
        for before in range(1, part.turn):
            name = f"archive/part_{before}.py"
            key = (turn, before)
            if key not in self._results:
                of_result = self._salt(f"result {turn}", before)
                self._results[key] = (await self._texts.text(of_result, "", part.tokens or 0)).content
            result = self._results[key]
            if not self._tools:
                messages += [
                    {"role": "assistant", "content": f"I read {name}."},
                    {"role": "user", "content": f"{name}:\n{result}"},
                ]
                continue
            call = {
                "id": f"call_{before}",
                "type": "function",
                "function": {"name": "read_file", "arguments": f'{{"path": "{name}"}}'},
            }
            messages += [
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"call_{before}", "content": result},
            ]
        more = {"tools": list(_TOOLS)} if self._tools else {}
        return Prepared(salted, tuple(messages), part.max_tokens, None, "", more)
