"""Starts that have their engine write down what it is asked, and logs in which that is to be seen.

While an engine serves, the host has only lines written that can hold no text of a request. A report does not
rely on it alone: the log may be of an older version, of a server of somebody's own, or from before it served.
"""

import re
from collections.abc import Mapping
from typing import Any

# Above this level llama.cpp prints requests.
_LEVEL = 4
_LEVEL_FLAGS = frozenset({"-lv", "--verbosity", "--log-verbosity"})
_FLAGS = frozenset(
    {
        *("-v", "--verbose", "--log-verbose", "--log-prompts-dir", "--log-file", "--log-requests"),
        *("--enable-log-requests", "--enable-log-outputs", "--enable-log-deltas", "--max-log-len"),
        *("--log-config-file", "--logging-config"),
    }
)
_VARIABLES = {
    "VLLM_LOGGING_LEVEL": re.compile(r"debug", re.IGNORECASE),
    "VLLM_DEBUG_LOG_API_SERVER_RESPONSE": re.compile(r"1|true", re.IGNORECASE),
    "VLLM_LOGGING_CONFIG_PATH": re.compile(r".+"),
    "LLAMA_LOG_VERBOSITY": re.compile(r"[5-9]|[1-9]\d+"),
    "LLAMA_ARG_LOG_VERBOSITY": re.compile(r"[5-9]|[1-9]\d+"),
}
_SIGNS = (
    # Of llama.cpp: a line of a level above the one that the host asks for; what it says of a grammar.
    re.compile(r"^\d+\.\d\d\.\d{3}\.\d{3} D ", re.MULTILINE),
    re.compile(r"log_server_r: {1,3}(?:request|response): "),
    re.compile(r"error parsing grammar: "),
    # Of vLLM.
    re.compile(r"Received request [\w-]{1,100}: "),
    re.compile(r"Generated response [\w-]{1,100}"),
    re.compile(r"enable_log_(?:requests|outputs|deltas)['\"]?[:=] ?True"),
    re.compile(r"\b(?:prompt|prompt_token_ids|messages)\\?['\"]?[:=] ?\\?['\"\[]"),
    re.compile(r"['\"](?:content|role)\\?['\"]: ?\\?['\"]"),
)


def quoting_option(plan: Mapping[str, Any]) -> str:
    """Return the option or variable by which a start has texts of requests in its log; empty for none."""
    argv = plan.get("argv")
    words = [str(word) for word in argv] if isinstance(argv, list | tuple) else []
    for place, word in enumerate(words):
        flag, joined, value = word.partition("=")
        flag = flag.replace("_", "-") if flag.startswith("--") else flag
        value = value if joined else next(iter(words[place + 1 : place + 2]), "")
        if flag in _LEVEL_FLAGS and not (value.isdecimal() and int(value) <= _LEVEL):
            return flag
        if flag in _FLAGS and not (joined and value.lower() in ("false", "0")):
            return flag
    environment = plan.get("environment")
    for name, value in (environment if isinstance(environment, Mapping) else {}).items():
        if name in _VARIABLES and _VARIABLES[name].fullmatch(str(value)):
            return str(name)
    return ""


def quotes(text: str) -> bool:
    """Return True for a log in which an engine quotes requests, or may have."""
    return any(sign.search(text) for sign in _SIGNS)


def without_quotes(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Return an engine without the lines of its log, where those quote requests."""
    found = dict(engine)
    plan, problem = engine.get("plan"), engine.get("problem")
    lines = engine.get("last_lines")
    evidence = problem.get("evidence") if isinstance(problem, Mapping) else None
    told = list(map(str, lines)) if isinstance(lines, list | tuple) else []
    told += [str(one) for one in evidence.values()] if isinstance(evidence, Mapping) else []
    if not quoting_option(plan if isinstance(plan, Mapping) else {}) and not quotes("\n".join(told)):
        return found
    found["last_lines"] = ["[left out: they may quote requests]"] if lines else []
    if isinstance(problem, Mapping):
        found["problem"] = {name: problem[name] for name in ("reason", "fix") if name in problem}
    return found
