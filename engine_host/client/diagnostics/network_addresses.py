"""Addresses of the network in a text, told apart from versions and times that look like them."""

import ipaddress
import re
from collections.abc import Callable

# No assertion stands at their beginnings: what begins with a set of letters is searched for ten times faster.
_V4 = re.compile(r"[0-9][0-9]{0,2}\.(?:[0-9]{1,3}\.){2}[0-9]{1,3}(?!\.?\w)")
# As a name of a machine of a cloud has it.
_V4_NAME = re.compile(r"ip-(?:[0-9]{1,3}-){3}[0-9]{1,3}(?!\w)")
_V6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:\[])")
# Of a network card; of InfiniBand it has 8 or 20 bytes. A name of a card can hold it.
_CARDS = (
    re.compile(r"[0-9A-Fa-f][0-9A-Fa-f]:(?:[0-9A-Fa-f]{2}:){4,18}[0-9A-Fa-f]{2}(?![\w:])"),
    re.compile(r"(?=[0-9-]{0,16}[A-Fa-f])(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}(?![\w-])"),
    re.compile(r"(?=[0-9.]{0,13}[A-Fa-f])(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}(?![\w.])"),
    re.compile(r"(?:enx|wlx)[0-9a-f]{12}(?![A-Za-z0-9])"),
)
_SIGNS_OF_CARDS = ((":", 5), ("-", 5), (".", 2), ("x", 1))
_BEFORE_ONE = re.compile(r"[\w:.-]")
# What stands before a version with four numbers, which an address may have too: a word that says so, or the
# name of a package; after "vllm: " an address may follow.
_BEFORE_VERSION = re.compile(
    r"(?:versions?|ver|release|revision|build|firmware|vbios)(?:\s(?:of|is))?[\"']?\s{0,3}[:=(]?\s{0,3}[\"']?v?$"
    r"|(?<![A-Za-z0-9])(?:cuda(?:[ _-](?:toolkit|runtime|driver|version))?|driver|cudnn|cublas|cublaslt|nccl"
    r"|cutlass|cufft|curand|cusolver|cusparse|nvrtc|nvjitlink|nvshmem|tensorrt|rocm|vllm|torch|triton|flashinfer"
    r"|llama\.cpp|python|gcc|clang|cmake|glibc)(?:[_-]cu\d{1,2})?[ -]v?$"
    r"|(?<![A-Za-z0-9])nvidia-[a-z0-9-]{2,30}[\"']?(?:: |[ =])[\"']?$"
    r"|(?:==|>=|<=|~=|!=)\s?$|(?:^|[\s(\"'])v\.?\s?$",
    re.IGNORECASE,
)
_AFTER_VERSION = re.compile(r"[+-](?:cu|cp|py|rc|dev|post|git|ubuntu|deb)\w", re.IGNORECASE)
_PORT_OR_NETWORK = re.compile(r"[:/]\d")
_LONGEST_WORDS = 48


def without_addresses(line: str, shown: Callable[[str], str], name: str = "") -> str:
    """Return a line with what `shown` makes of each address; those of the machine itself stay.

    `name` is what stands before the line: the name of its field.
    """

    def begins(at: int) -> bool:
        return not at or _BEFORE_ONE.match(line, at - 1) is None

    def card(found: re.Match[str]) -> str:
        return shown(found[0]) if begins(found.start()) else found[0]

    def named(found: re.Match[str]) -> str:
        at = found.start()
        return found[0] if at and line[at - 1].isalnum() else shown(found[0])

    def v4(found: re.Match[str]) -> str:
        at, end = found.span()
        if at and (line[at - 1].isalnum() or line[at - 1] in "._"):
            return found[0]
        if _PORT_OR_NETWORK.match(line, end) is None:
            before = line[max(0, at - _LONGEST_WORDS) : at] if at or not name else f"{name}: "
            if _BEFORE_VERSION.search(before) or _AFTER_VERSION.match(line, end):
                return found[0]
        return shown(found[0]) if _is_foreign(found[0]) else found[0]

    def v6(found: re.Match[str]) -> str:
        for end in ("", ":"):
            # A sentence goes on after it: "connect to 2001:db8::7: refused".
            address = found[0].removesuffix(end)
            if _is_foreign(address):
                return shown(address) + found[0][len(address) :]
        return found[0]

    # Most lines have none, and to look closely is dear.
    for pattern, (sign, count) in zip(_CARDS, _SIGNS_OF_CARDS, strict=True):
        if line.count(sign) >= count:
            line = pattern.sub(card, line)
    if line.count(".") > 2:
        line = _V4.sub(v4, line)
    if "ip-" in line:
        line = _V4_NAME.sub(named, line)
    return _V6.sub(v6, line) if "::" in line or line.count(":") > 6 else line


def is_address(text: str) -> bool:
    """Return True for an address in digits, which is no name."""
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_foreign(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False  # A time of day, or a version.
    return not (address.is_loopback or address.is_unspecified)
