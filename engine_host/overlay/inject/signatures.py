"""One text for the parameters of a function, the same from an object and from source."""

import ast
import inspect
from collections.abc import Iterable


def of_object(function: object) -> str:
    """The parameters of a callable: names and kinds, `= ...` for a default. Raises TypeError, ValueError.

    Those of the innermost function that decorators wrap, which is what its source shows.
    """
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return _text(
        (str(parameter.kind.name), parameter.name, parameter.default is not parameter.empty)
        for parameter in parameters
    )


def of_source(node: "ast.FunctionDef | ast.AsyncFunctionDef") -> str:
    """The parameters of a function in a syntax tree."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    plain = len(positional) - len(arguments.defaults)
    found = [
        (
            "POSITIONAL_ONLY" if index < len(arguments.posonlyargs) else "POSITIONAL_OR_KEYWORD",
            argument.arg,
            index >= plain,
        )
        for index, argument in enumerate(positional)
    ]
    if arguments.vararg:
        found.append(("VAR_POSITIONAL", arguments.vararg.arg, False))
    found += [
        ("KEYWORD_ONLY", argument.arg, default is not None)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg:
        found.append(("VAR_KEYWORD", arguments.kwarg.arg, False))
    return _text(found)


def _text(parameters: Iterable[tuple[str, str, bool]]) -> str:
    words: list[str] = []
    positional_only = star = False
    for kind, name, default in parameters:
        if kind == "POSITIONAL_ONLY":
            positional_only = True
        elif positional_only:
            words.append("/")
            positional_only = False
        if kind == "KEYWORD_ONLY" and not star:
            words.append("*")
            star = True
        if kind == "VAR_POSITIONAL":
            star = True
        mark = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(kind, "")
        words.append(f"{mark}{name}{' = ...' if default else ''}")
    if positional_only:
        words.append("/")
    return f"({', '.join(words)})"
