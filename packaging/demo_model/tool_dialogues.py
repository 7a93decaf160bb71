# ruff: noqa: E501, SIM905 - lists of phrases read best as long lines and split strings
"""Made-up tools, requests for them, the calls that answer the requests, and what is said about the results.

Most values are invented letter by letter, so that the model has to copy them from the request.
"""

from __future__ import annotations

import json
import random
import string
from typing import Any

from tool_catalogue import TOOLS, Tool

Message = dict[str, Any]

CITIES = (
    "Paris|London|Berlin|Rome|Madrid|Tokyo|New York|Sydney|Cairo|Oslo|Lisbon|Vienna|Prague|Athens|Dublin|Lima"
    "|Kyoto|Toronto|Chicago|Boston|Seattle|Milan|Munich|Hamburg|Lyon|Porto|Seville|Krakow|Helsinki|Stockholm"
    "|San Francisco|Los Angeles|Buenos Aires|Hong Kong|Cape Town|Mexico City|Tel Aviv|Rio de Janeiro|Kyiv|Minsk"
).split("|")
PEOPLE = (
    "Ada|Bob|Carol|Dave|Eve|Frank|Grace|Heidi|Ivan|Judy|Mallory|Olivia|Peggy|Rupert|Sybil|Trent|Victor".split(
        "|"
    )
)
WORDS = (
    "report|budget|meeting|garden|music|river|planet|coffee|window|summer|history|python|network|engine|memory|"
    "battery|camera|market|village|forest|museum|football|chess|kitchen|bicycle|ocean|winter|concert|holiday|"
    "project|invoice|kernel|driver|model|server|socket|thread|table|letter|paper|ticket|flight|hotel"
).split("|")
LANGUAGES = (
    "French|German|Spanish|Italian|Russian|Japanese|Chinese|Portuguese|Dutch|Polish|Greek|Turkish".split("|")
)
CURRENCIES = "USD|EUR|GBP|JPY|CHF|CAD|AUD|SEK|NOK|PLN|CZK|INR|BRL|CNY".split("|")
EXTENSIONS = "txt|md|py|json|csv|log|toml|yaml|html|ini".split("|")
SYLLABLES = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "or", "el", "is")]


def invented(rng: random.Random) -> str:
    """Return a word that does not exist."""
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 3)))


def value(kind: str, rng: random.Random) -> Any:
    """Return a random value of one of the kinds that the tools below name."""
    if kind == "city":
        draw_ = rng.random()
        if draw_ < 0.5:
            return rng.choice(CITIES)
        name = invented(rng).capitalize()
        return (
            name
            if draw_ < 0.8
            else rng.choice(["New ", "San ", "Port ", "Saint ", "Los ", "Fort ", "Lake "]) + name
        )
    if kind == "person":
        return rng.choice(PEOPLE) if rng.random() < 0.5 else invented(rng).capitalize()
    if kind == "int":
        return rng.choice([rng.randint(0, 20), rng.randint(0, 999), rng.randint(1000, 99999)])
    if kind == "number":
        return rng.choice(
            [rng.randint(0, 99), rng.randint(100, 9999), round(rng.uniform(0, 100), rng.randint(1, 2))]
        )
    if kind == "path":
        parts = [rng.choice([rng.choice(WORDS), invented(rng)]) for _ in range(rng.randint(1, 3))]
        lead = rng.choice(["", "", "/", "/home/", "./", "data/", "/tmp/", "src/", "/etc/"])
        return lead + "/".join(parts) + "." + rng.choice(EXTENSIONS)
    if kind == "folder":
        return rng.choice(["", "/", "/home/", "./"]) + rng.choice([rng.choice(WORDS), invented(rng)])
    if kind == "query":
        return " ".join(
            rng.choice([rng.choice(WORDS), rng.choice(WORDS), invented(rng)])
            for _ in range(rng.randint(1, 4))
        )
    if kind == "date":
        return f"{rng.randint(2020, 2030)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    if kind == "time":
        return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    if kind == "email":
        return f"{rng.choice([invented(rng), rng.choice(PEOPLE).lower()])}@{invented(rng)}.{rng.choice(['com', 'org', 'net'])}"
    if kind == "language":
        return rng.choice(LANGUAGES)
    if kind == "currency":
        return rng.choice(CURRENCIES)
    if kind == "code":
        return "".join(rng.choice(string.ascii_uppercase) for _ in range(rng.randint(2, 4))) + str(
            rng.randint(1, 999)
        )
    if kind == "url":
        return f"https://{invented(rng)}.{rng.choice(['com', 'org', 'net', 'io'])}/{rng.choice(WORDS)}"
    if kind == "word":
        return rng.choice([rng.choice(WORDS), invented(rng)])
    if kind == "text":
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 6)))
    raise KeyError(kind)


def expression(rng: random.Random) -> str:
    """Return a short arithmetic expression."""
    return f"{rng.randint(0, 999)} {rng.choice('+-*/')} {rng.randint(1, 999)}"


def draw(kind: str, rng: random.Random) -> Any:
    """Return a value of a kind, including those that only results have."""
    if kind == "sum":
        return expression(rng)
    if kind == "sky":
        return rng.choice(["sunny", "cloudy", "rainy", "windy", "foggy", "snowing", "clear"])
    if kind == "ok":
        return rng.choice(["ok", "done", "success"])
    if kind == "command":
        return (
            rng.choice(["ls", "cat", "grep", "head", "wc", "python", "git", "echo"])
            + " "
            + value("word", rng)
        )
    if kind == "expression":
        return rng.choice(
            [
                f"print({expression(rng)})",
                f'len("{value("word", rng)}")',
                f"sum([{rng.randint(1, 99)}, {rng.randint(1, 99)}])",
                f"max({rng.randint(1, 99)}, {rng.randint(1, 99)})",
            ]
        )
    return value(kind, rng)


DESCRIPTIONS: dict[str, tuple[str, ...]] = {
    "city": ("The city and state, e.g. San Francisco, CA", "City name", "The name of the city", "e.g. Paris"),
    "number": ("The first number", "A number", "Number to use", "The operand"),
    "int": ("A whole number", "An integer", "How many"),
    "path": ("Path of the file", "The path to the file, relative or absolute", "File to use"),
    "query": ("The search query", "What to search for", "Search terms"),
    "text": ("The text", "Text to use", "The content as plain text"),
    "date": ("The date, YYYY-MM-DD", "Day in ISO format"),
    "sum": ("The expression to evaluate, e.g. 2 + 2", "An arithmetic expression"),
    "url": ("The address of the page", "URL to open"),
}
JSON_TYPES = {"int": "integer", "number": "number"}


def schema(tool: Tool, name: str, names: list[str], rng: random.Random) -> Message:
    """Return the tool as a request's ``function`` object."""
    kinds = [p.rpartition(":")[2] for p in tool.parameters.split(",")]
    properties: Message = {}
    for parameter, kind in zip(names, kinds, strict=True):
        properties[parameter] = {"type": JSON_TYPES.get(kind, "string")}
        if rng.random() < 0.5:
            properties[parameter]["description"] = rng.choice(
                [
                    *DESCRIPTIONS.get(kind, ()),
                    *DESCRIPTIONS.get(kind, ()),
                    f"The {parameter}",
                    f"{parameter.capitalize()} to use",
                    f"The {kind}",
                    f"the {parameter} of the request",
                ]
            )
    names = list(names)
    if rng.random() < 0.3:  # an optional parameter that no request mentions
        extra, kind = rng.choice(
            [
                ("unit", "string"),
                ("limit", "integer"),
                ("verbose", "boolean"),
                ("format", "string"),
                ("units", "string"),
                ("timeout", "number"),
                ("lang", "string"),
                ("mode", "string"),
            ]
        )
        if extra not in properties:
            properties[extra] = {"type": kind}
            if extra in ("unit", "units"):
                properties[extra]["enum"] = ["celsius", "fahrenheit"]
    about = tool.about + rng.choice(["", "."])
    parameters: Message = {"type": "object", "properties": properties}
    if rng.random() < 0.8:
        parameters["required"] = list(names)
    return {"name": name, "description": about, "parameters": parameters}


NOUNS = (
    "record|price|status|color|size|weight|owner|score|level|balance|address|rating|version|speed|mode".split(
        "|"
    )
)
ACTIONS = "get|find|fetch|check|read|lookup|show|query".split("|")


def invented_tool(rng: random.Random) -> Tool:
    """Return a tool that no other dialogue has, from invented words."""
    noun = rng.choice([rng.choice(NOUNS), rng.choice(NOUNS), invented(rng)])
    parameter = rng.choice(["name", "id", "item", "key", "target", invented(rng)])
    kind = rng.choice(["word", "person", "code", "city", "int"])
    action = rng.choice(ACTIONS)
    return Tool(
        f"{action}_{noun}",
        f"{action.capitalize()} the {noun} of something",
        f"{parameter}:{kind}",
        f"What is the {noun} of {{0}}?|{action.capitalize()} the {noun} of {{0}}.|{noun} of {{0}}|"
        f"Use {action}_{noun} with {parameter} {{0}}.|Call {action}_{noun} for {{0}}",
        f"{noun}:{rng.choice(['word', 'int', 'number'])}",
        f"The {noun} of {{0}} is {{{noun}}}.",
    )


def dialogue(rng: random.Random, tools: tuple[Tool, ...] = TOOLS) -> tuple[list[Message], list[Message]]:
    """Return (tools, messages) of one conversation in which a tool is called and its result is told."""
    tool = invented_tool(rng) if rng.random() < 0.35 else rng.choice(tools)
    name = rng.choice(tool.names.split("|"))
    names = [rng.choice(p.rpartition(":")[0].split("|")) for p in tool.parameters.split(",")]
    if len(set(names)) < len(names):
        names = [p.split("|")[0].rpartition(":")[0] or p.split("|")[0] for p in tool.parameters.split(",")]
    functions = [schema(tool, name, names, rng)]
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        other = rng.choice(tools)
        if other.names != tool.names:
            their = [p.split("|")[0].partition(":")[0] for p in other.parameters.split(",")]
            functions.append(schema(other, rng.choice(other.names.split("|")), their, rng))
    functions = list({f["name"]: f for f in reversed(functions)}.values())
    rng.shuffle(functions)
    kinds = [p.rpartition(":")[2] for p in tool.parameters.split(",")]
    values = [draw(kind, rng) for kind in kinds]
    request = rng.choice(tool.requests.split("|")).format(*values)
    if rng.random() < 0.12:
        request = (
            rng.choice(["Please ", "Can you help? ", "Hi! ", f"Use {name}. ", f"Call {name}: "]) + request
        )
    if rng.random() < 0.15:
        request = request[0].lower() + request[1:]
    result = {k: draw(kind, rng) for k, _, kind in (r.partition(":") for r in tool.results.split("|"))}
    if "result" in result and tool.names.startswith("add"):
        result["result"] = round(values[0] + values[1], 2)
    style = rng.random()
    if style < 0.75:
        content = json.dumps(result, ensure_ascii=False)
        told = tool.closing.format(*values, **result)
    else:
        key, only = next(iter(result.items()))
        content = str(only) if style < 0.9 else f"{key}: {only}"
        told = (
            tool.closing.format(*values, **result)
            if len(result) == 1
            else f"The result for {values[0]} is: {content}."
        )
    if "status" in result and style >= 0.75 and len(result) == 1:
        told = tool.closing.format(*values, **result)
    if rng.random() < 0.06:
        content, told = rng.choice(
            [
                ('{"error": "not found"}', "The tool answered with an error: not found."),
                ("error: timeout", "The tool answered with an error: timeout."),
                ('{"error": "permission denied"}', "The tool answered with an error: permission denied."),
            ]
        )
    call = {"name": name, "arguments": dict(zip(names, values, strict=True))}
    messages: list[Message] = [
        {"role": "user", "content": request},
        {"role": "assistant", "tool_calls": [call]},
    ]
    if rng.random() < 0.7:
        messages += [{"role": "tool", "content": content}, {"role": "assistant", "content": told}]
    return functions, messages
