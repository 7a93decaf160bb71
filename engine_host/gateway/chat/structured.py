"""Say the form of an answer in the words of the engine: each has its own beside `response_format`.

llama.cpp reads `json_schema` and `grammar`, and of a completion no `response_format`; vLLM reads
`structured_outputs` and, in old versions, `guided_json` and others. Each leaves out the other's words
silently, and a client believes that the form was kept.
"""

import json
from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.protocol.errors import Reason

_OF_VLLM = "structured_outputs"
_OLD = {
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
}
_FORMATS, _MORE = ("text", "json_object", "json_schema"), ("structural_tag",)
"""Types of a `response_format`, and those that vLLM alone has."""
_OF_LLAMACPP = {"json_schema": "json", "grammar": "grammar"}


def in_words_of(body: dict[str, Any], *, for_llamacpp: bool) -> dict[str, Any]:
    """Return a chat or completion that asks for its form as its engine does, the same where it does already.

    Raises EndpointError 400 for a form that the engine does not have, and for what is none.
    """
    _check(body, for_llamacpp=for_llamacpp)
    given = body.get(_OF_VLLM)
    if given is not None and not isinstance(given, dict):
        raise faults.invalid(f"{_OF_VLLM} must be an object.", param=_OF_VLLM, code="invalid_type")
    others = _OLD if for_llamacpp else {**_OLD, **_OF_LLAMACPP}
    if for_llamacpp and "messages" not in body:
        body = _of_completion(body)
    elif for_llamacpp and body.get("tools") and body.get("json_schema") is not None:
        # A chat's form has to be seen by what tells tools and a form apart.
        body = _of_chat(body)
    wanted = {new: body[old] for old, new in others.items() if body.get(old) is not None}
    if not wanted and (given is None or not for_llamacpp):
        return body
    wanted |= {name: value for name, value in (given or {}).items() if value is not None}
    rest = {name: value for name, value in body.items() if name not in others and name != _OF_VLLM}
    if not for_llamacpp:
        return {**rest, _OF_VLLM: wanted}
    return {**rest, **_of_llamacpp(wanted, is_chat="messages" in body)}


def _check(body: dict[str, Any], *, for_llamacpp: bool) -> None:
    """Refuse a form of another type, which llama.cpp leaves out without a word. Raises EndpointError 400."""
    for name, kind, words in (("json_schema", dict, "an object"), ("grammar", str, "a text")):
        if body.get(name) is not None and not isinstance(body[name], kind):
            raise faults.invalid(f"{name} must be {words}.", param=name, code="invalid_type")
    asked = body.get("response_format")
    if isinstance(asked, dict) and asked.get("type") not in (*_FORMATS, *(() if for_llamacpp else _MORE)):
        raise faults.wrong_kind("response_format", _FORMATS)
    if isinstance(asked, dict) and asked.get("type") == "json_schema" and _schema_of(asked) is None:
        raise faults.invalid(
            "response_format is a json_schema without a schema: it is an object at json_schema.schema.",
            param="response_format",
        )


def _schema_of(asked: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of a `response_format`: where OpenAI has it, or llama.cpp."""
    named = asked.get("json_schema")
    schema = named.get("schema") if isinstance(named, dict) else asked.get("schema")
    return schema if isinstance(schema, dict) else None


def _named(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _of_chat(body: dict[str, Any]) -> dict[str, Any]:
    """Return a chat of llama.cpp whose own field for a schema is a `response_format`."""
    rest = {name: value for name, value in body.items() if name != "json_schema"}
    return {"response_format": _named(body["json_schema"]), **rest}


def _of_completion(body: dict[str, Any]) -> dict[str, Any]:
    """Return a completion of llama.cpp whose `response_format` is its own field for a schema."""
    asked: dict[str, Any] | None = body.get("response_format")
    if asked is None:
        return body
    if asked["type"] == "text":
        return {name: value for name, value in body.items() if name != "response_format"}
    rest = {name: value for name, value in body.items() if name != "response_format"}
    return {"json_schema": _schema_of(asked) or {"type": "object"}, **rest}


def _of_llamacpp(wanted: dict[str, Any], *, is_chat: bool) -> dict[str, Any]:
    """Return the fields of llama.cpp for a form in vLLM's words."""
    schema, choice, grammar = wanted.get("json"), wanted.get("choice"), wanted.get("grammar")
    if schema is None and wanted.get("json_object"):
        schema = {"type": "object"}
    if schema is not None:
        schema = _parsed(schema)
        return {"response_format": _named(schema)} if is_chat else {"json_schema": schema}
    if choice is not None:
        return {"grammar": _one_of(choice)}
    if grammar is not None:
        if not isinstance(grammar, str):
            raise faults.invalid("A grammar must be a text.", param=_OF_VLLM, code="invalid_type")
        return {"grammar": grammar}
    for name in ("regex", "structural_tag"):
        if wanted.get(name) is not None:
            raise faults.EndpointError(
                400,
                "unsupported",
                f"llama.cpp holds no answer to a {name}; vLLM does. It has a JSON schema, "
                "one of several texts (choice), and a grammar.",
                Reason.UNSUPPORTED,
                _OF_VLLM,
            )
    # What says how to keep a form is vLLM's own.
    return {}


def _parsed(schema: Any) -> dict[str, Any]:
    """Return a JSON schema, which vLLM takes as a text too. Raises EndpointError 400."""
    try:
        parsed = json.loads(schema) if isinstance(schema, str) else schema
    except (ValueError, RecursionError) as error:
        raise faults.invalid("The JSON schema of the answer is no JSON.", param=_OF_VLLM) from error
    if not isinstance(parsed, dict):
        raise faults.invalid("A JSON schema must be an object.", param=_OF_VLLM, code="invalid_type")
    return parsed


def _one_of(choice: Any) -> str:
    """Return the grammar of one of several texts. Raises EndpointError 400."""
    if not isinstance(choice, list) or not choice or not all(isinstance(one, str) for one in choice):
        raise faults.invalid("choice must be a list of texts.", param=_OF_VLLM, code="invalid_type")
    return "root ::= " + " | ".join(_literal(one) for one in choice)


def _literal(text: str) -> str:
    """Return a text as GBNF writes one: letters outside printable ASCII as escapes."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if " " <= letter <= "~":
        return letter
    return f"\\U{ord(letter):08X}"
