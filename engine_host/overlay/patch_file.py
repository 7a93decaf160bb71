"""`patch.toml`: what a patch says of itself; docs/OVERLAY.md describes every key."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.patches import Risk

_WORDS = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MODULE = re.compile(r"vllm(\.[A-Za-z_]\w*)+")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_FUNCTION = re.compile(r"[A-Za-z_]\w*:[A-Za-z_]\w*")
_FAMILY = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")


_LARGEST = 1 << 20
_LONGEST_RANGE = 200
# Letters of an edit; a module that is edited a hundred times so stays one that can be held.
_LONGEST_EDIT = 50_000


def _matching(pattern: re.Pattern[str], kind: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"must be {kind}")
        return text

    return AfterValidator(check)


def _specifier(text: str) -> str:
    if len(text) > _LONGEST_RANGE:
        raise ValueError("must be shorter")
    try:
        found = SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError("must be a PEP 440 range such as '>=0.26,<0.33'") from error
    if not len(found):
        raise ValueError("must narrow something: an empty range would mean every version")
    return text


def _not_everything(text: str) -> str:
    if text == "all":
        raise ValueError("must not be 'all', which means every patch")
    return text


def _https(text: str) -> str:
    if not text.startswith("https://"):
        raise ValueError("must be an https:// address")
    return text


PatchId = Annotated[
    str, _matching(_WORDS, "lower-case words joined by hyphens"), AfterValidator(_not_everything)
]
Module = Annotated[str, _matching(_MODULE, "a dotted module below vllm")]
Dotted = Annotated[str, _matching(_DOTTED, "a dotted name")]
Function = Annotated[str, _matching(_FUNCTION, "file:function")]
Range = Annotated[str, AfterValidator(_specifier)]
Address = Annotated[str, AfterValidator(_https)]
Family = Annotated[
    str, _matching(_FAMILY, "lower-case words joined by dots or hyphens"), AfterValidator(_not_everything)
]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class AppliesTo(_Table):
    """The conditions under which a patch applies; an empty list does not narrow."""

    vllm: Range
    platforms: tuple[Literal["cuda", "rocm", "xpu", "cpu"], ...] = ()
    sm: Range | None = None
    kv_cache_dtypes: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    speculation: tuple[str, ...] = ()


class TextEdit(_Table):
    """An edit of a module's source; `find` must occur exactly `count` times."""

    module: Module
    vllm: Range | None = None
    find: str = Field(min_length=1, max_length=_LONGEST_EDIT)
    replace: str = Field(max_length=_LONGEST_EDIT)
    count: int = Field(1, ge=1, le=100)

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.find == self.replace:
            raise ValueError("`find` and `replace` are the same")
        return self


class Rebind(_Table):
    """A function or method that is replaced after its module was imported."""

    module: Module
    vllm: Range | None = None
    target: Dotted
    replacement: Function
    signature: str = Field(pattern=r"^\(.*\)$")


class Hook(_Table):
    """An official extension point of vLLM."""

    point: Literal["general_plugins", "endpoint_plugins", "middleware", "kernels"]
    vllm: Range | None = None
    function: Function


class Merged(_Table):
    """Text in a module that shows that upstream fixed it."""

    module: Module
    text: str = Field(min_length=1)


class Probe(_Table):
    """The conditions of "live" for a patch."""

    modules: tuple[Module, ...] = ()
    counts: bool = False


class Evidence(_Table):
    """A measurement; a missing number is 'not measured'."""

    metric: str
    before: float | None = None
    after: float | None = None
    unit: str = ""
    n: int | None = Field(None, ge=1)
    machine: str = ""
    pin: str = ""
    command: str = ""


class PatchFile(_Table):
    """Everything in a `patch.toml`."""

    id: PatchId
    title: str = Field(min_length=1, max_length=90)
    family: Family
    problem: str = Field(min_length=1)
    upstream_issues: tuple[Address, ...] = ()
    upstream_prs: tuple[Address, ...] = ()
    risk: Risk
    risk_note: str = ""
    required: bool = False
    required_with_speculation: bool = False
    default: bool = True
    default_sm: Range | None = None
    requires: tuple[PatchId, ...] = ()
    conflicts: tuple[PatchId, ...] = ()
    after: tuple[PatchId, ...] = ()
    retire_when: str = ""
    applies_to: AppliesTo
    text: tuple[TextEdit, ...] = ()
    rebind: tuple[Rebind, ...] = ()
    hook: tuple[Hook, ...] = ()
    upstream_merged: Merged | None = None
    probe: Probe = Probe.model_construct()
    evidence: tuple[Evidence, ...] = ()

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not (self.text or self.rebind or self.hook):
            raise ValueError("the patch does nothing: it has no [[text]], [[rebind]] or [[hook]]")
        if self.id in {*self.requires, *self.conflicts, *self.after}:
            raise ValueError("a patch cannot require, follow or conflict with itself")
        if both := {*self.requires} & {*self.conflicts}:
            raise ValueError(f"it requires {min(both)} and conflicts with it")
        if self.default_sm is not None and not self.default:
            raise ValueError("`default_sm` narrows a patch that is on by default, and `default` is false")
        return self


def read_patch_file(folder: Path) -> PatchFile:
    """Read and check `patch.toml` of a folder. Raises HostError(patch_invalid) that names key and file."""
    path = folder / "patch.toml"
    try:
        written: dict[str, Any] = tomllib.loads(files.read_text(path, _LARGEST))
    except (ValueError, RecursionError) as error:
        # Not TOML, not UTF-8, a number of more digits than can be read, or lists in lists.
        raise _invalid(path, "", tr("it is not valid TOML: {error}", error=error)) from error
    except OSError as error:
        raise _invalid(path, "", tr("it cannot be read: {error}", error=error.strerror)) from error
    try:
        patch = PatchFile.model_validate(written)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message = (
            tr("there is no such key") if first["type"] == "extra_forbidden" else _lower_first(first["msg"])
        )
        raise _invalid(path, key, message) from error
    if patch.id != folder.name:
        raise _invalid(
            path,
            "id",
            tr("it says {patch}, but the folder is called {folder}", patch=patch.id, folder=folder.name),
        )
    for function in (*(one.replacement for one in patch.rebind), *(one.function for one in patch.hook)):
        if not (folder / f"{function.partition(':')[0]}.py").is_file():
            raise _invalid(
                path, "", tr("{function} names a file that is not in the folder", function=function)
            )
    return patch


def _lower_first(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _invalid(path: Path, key: str, message: str) -> HostError:
    return HostError(
        Reason.PATCH_INVALID,
        tr(
            "{path} is wrong{what}: {message}.",
            path=path,
            what=tr(" at {key}", key=key) if key else "",
            message=message,
        ),
        cause="A patch that is not wholly understood is never applied.",
        fix="Correct the file; docs/OVERLAY.md describes every key.",
        evidence={"file": str(path), "key": key},
    )
