"""A captured request as a command for a shell, in which no text from outside can run or steer anything.

The body is written in ASCII: what would end a quotation, be expanded by a shell, or steer a terminal while
it is pasted stands there as JSON's `\\u0027`. The key is a variable, which the shell fills in.
"""

import json
import re
from typing import Any

from engine_host.core.outside import json_text

_LONGEST_ARGUMENT = 100_000
"""Characters that go into one argument; Linux takes 128 KiB."""
_END = "SNDR_BODY"
_PLAIN_PATH = re.compile(r"\A/[A-Za-z0-9/_.-]{1,200}\Z")
_PLAIN_URL = re.compile(r"\Ahttps?://[A-Za-z0-9.:\[\]-]{1,200}(?:/[A-Za-z0-9/_.-]*)?\Z")
_PLAIN_VALUE = re.compile(r"\A[A-Za-z0-9,._ -]{1,200}\Z")
_KEPT_HEADERS = ("anthropic-version", "anthropic-beta", "openai-beta")
# A quotation mark ends a word, an exclamation mark calls the history up in some shells.
_ESCAPED = str.maketrans({"'": "\\u0027", "!": "\\u0021", "\x7f": "\\u007f"})


def curl_command(base: str, path: str, headers: dict[str, str], body: bytes) -> str | None:
    """Return the command that sends the request again to `base`, the endpoint without `/v1`.

    None for what cannot be written so that it is certain to be the same request.
    """
    value = _object(body)
    if value is None or not _PLAIN_PATH.match(path) or not _PLAIN_URL.match(base):
        return None
    data = json.dumps(value, ensure_ascii=True).translate(_ESCAPED)
    words = ["curl", "-sS", "-N", f"'{base}{path}'"]
    words += ["-H", "'content-type: application/json'", "-H", '"authorization: Bearer $SNDR_API_KEY"']
    for name in _KEPT_HEADERS:
        told = headers.get(name, "")
        if _PLAIN_VALUE.match(told):
            words += ["-H", f"'{name}: {told}'"]
    if len(data) <= _LONGEST_ARGUMENT:
        return " ".join([*words, "--data-raw", f"'{data}'"])
    # One line that begins with a brace is never the word that ends it.
    return " ".join([*words, "--data-binary", "@-", f"<<'{_END}'"]) + f"\n{data}\n{_END}"


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        return json_text.parse_object(body)
    except ValueError:
        return None
