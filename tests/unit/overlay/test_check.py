"""Preflight of patches against sources on disk: verdicts, and the nearest text to an anchor that moved."""

import ast
import contextlib
import inspect
import textwrap
import time
from pathlib import Path

import pytest

from engine_host.overlay.check import check, check_patch, find_function, nearest, operations
from engine_host.overlay.inject.signatures import of_object, of_source
from engine_host.overlay.patch_catalog import BUILT_IN, PatchCatalog
from engine_host.overlay.sources import VllmSource
from engine_host.protocol.patches import CheckVerdict, PatchCheck, PatchKind, PatchReason
from tests.pace import within
from tests.unit.overlay.fake_vllm import hook, rebind, text, write_patch

SCHEDULER = '''
"""Schedules."""
import sys

class Scheduler:
    def step(self, tokens: int = 3, *, wait: bool) -> int:
        waited = wait_for_tokens(tokens, self.limit)
        return waited + self.limit

    @property
    def size(self):
        return 1

    @size.setter
    def size(self, value):
        pass

if sys.platform == "linux":
    def now(): ...
else:
    def later(a): ...

try:
    import fast
except ImportError:
    async def slow(b): ...
'''


@pytest.fixture
def source(tmp_path: Path) -> VllmSource:
    return VllmSource(
        "0.32.0+cpu", "a test", lambda name: SCHEDULER.encode() if name == "vllm/s.py" else None
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "patches"


def checked(place: Path, source: VllmSource) -> dict[str, PatchCheck]:
    catalogue = PatchCatalog.load((place,))
    assert not catalogue.faults
    return {one.patch: one for one in check(catalogue, source)}


CODE = "def replacement(original):\n    return original\n"
FITTING = "return waited + self.limit"
STEP = "(self, tokens = ..., *, wait)"
VERDICTS = {
    "text": (text("vllm.s", FITTING, "return 1"), CheckVerdict.APPLIES, None),
    "rebind": (rebind("vllm.s", "Scheduler.step", STEP), CheckVerdict.APPLIES, None),
    "getter": (rebind("vllm.s", "Scheduler.size", "(self)"), CheckVerdict.APPLIES, None),
    "below-if": (rebind("vllm.s", "later", "(a)"), CheckVerdict.APPLIES, None),
    "below-except": (rebind("vllm.s", "slow", "(b)"), CheckVerdict.APPLIES, None),
    "hook": (hook("general_plugins"), CheckVerdict.APPLIES, None),
    "moved": (
        text("vllm.s", "return waited - self.limit", ""),
        CheckVerdict.ANCHOR_DRIFT,
        PatchReason.ANCHOR_MISSING,
    ),
    "twice": (text("vllm.s", "self.limit", ""), CheckVerdict.ANCHOR_DRIFT, PatchReason.ANCHOR_AMBIGUOUS),
    "no-module": (text("vllm.t", "a", "b"), CheckVerdict.TARGET_MISSING, PatchReason.MODULE_MISSING),
    "no-module-to-rebind": (
        rebind("vllm.t", "f", "()"),
        CheckVerdict.TARGET_MISSING,
        PatchReason.MODULE_MISSING,
    ),
    "no-target": (
        rebind("vllm.s", "Scheduler.stop", "()"),
        CheckVerdict.TARGET_MISSING,
        PatchReason.TARGET_MISSING,
    ),
    "other-signature": (
        rebind("vllm.s", "Scheduler.step", "(self, tokens)"),
        CheckVerdict.SIGNATURE_CHANGED,
        PatchReason.SIGNATURE_CHANGED,
    ),
    "merged": (
        text("vllm.s", "gone", "") + '[upstream_merged]\nmodule = "vllm.s"\ntext = "wait_for_tokens"\n',
        CheckVerdict.UPSTREAM_MERGED,
        PatchReason.UPSTREAM_MERGED,
    ),
    "nothing-for-this-version": (
        text("vllm.s", FITTING, "x").replace("[[text]]", "[[text]]\nvllm = '<0.30'"),
        CheckVerdict.OUT_OF_RANGE,
        PatchReason.OUT_OF_RANGE,
    ),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(place: Path, source: VllmSource, name: str) -> None:
    operation, verdict, reason = VERDICTS[name]
    write_patch(place, name, operation, CODE)
    found = checked(place, source)[name]
    assert (found.verdict, found.reason) == (verdict, reason)


@pytest.mark.parametrize("operation", [rebind("vllm.s", "Scheduler.step", STEP), hook("general_plugins")])
@pytest.mark.parametrize(
    ("code", "said"),
    [("def replacement(:\n", "cannot be read"), ("other = 1\n", "patch.py has no ")],
    ids=["no-python", "no-such-function"],
)
def test_code_that_cannot_work_is_told_before_a_start(
    place: Path, source: VllmSource, operation: str, code: str, said: str
) -> None:
    write_patch(place, "one", operation, code)
    found = checked(place, source)["one"]
    assert (found.verdict, found.reason) == (CheckVerdict.CODE_BROKEN, PatchReason.RAISED)
    assert said in found.operations[0].detail


@pytest.mark.parametrize(
    "code",
    [
        "from math import sin as replacement\n",
        "replacement = print\n",
        "if True:\n    def replacement(original):\n        return original\n",
    ],
)
def test_a_function_may_come_from_elsewhere(place: Path, source: VllmSource, code: str) -> None:
    write_patch(place, "one", rebind("vllm.s", "Scheduler.step", STEP), code)
    assert checked(place, source)["one"].verdict is CheckVerdict.APPLIES


def test_another_version_is_out_of_range(place: Path, source: VllmSource) -> None:
    write_patch(place, "one", text("vllm.s", FITTING, "x"))
    other = VllmSource("0.33.0rc1", source.label, source.reader)
    assert checked(place, other)["one"].verdict is CheckVerdict.OUT_OF_RANGE


def test_anchors_are_looked_for_in_what_patches_before_wrote(place: Path, source: VllmSource) -> None:
    write_patch(place, "first", text("vllm.s", FITTING, "return 41"))
    write_patch(place, "second", text("vllm.s", "return 41", "return 42"), requires=["first"])
    write_patch(place, "third", text("vllm.s", FITTING, "return 43"), requires=["second"])
    found = checked(place, source)
    assert found["second"].verdict is CheckVerdict.APPLIES
    assert found["third"].verdict is CheckVerdict.ANCHOR_DRIFT
    assert found["first"].needed_by == ("second", "third")
    assert found["third"].needed_by == ()


def test_a_patch_that_does_not_fit_leaves_the_text_to_the_others(place: Path, source: VllmSource) -> None:
    write_patch(place, "half", text("vllm.s", FITTING, "return 41") + text("vllm.s", "not there", ""))
    write_patch(place, "other", text("vllm.s", FITTING, "return 42"))
    assert checked(place, source)["other"].verdict is CheckVerdict.APPLIES


def test_a_signature_is_looked_for_in_what_edits_made_of_it(place: Path, source: VllmSource) -> None:
    wider = text("vllm.s", "tokens: int = 3, *, wait: bool", "tokens, wait, more=1")
    fits = rebind("vllm.s", "Scheduler.step", "(self, tokens, wait, more = ...)")
    write_patch(place, "a-wider", wider)
    write_patch(place, "b-after", fits, CODE)
    write_patch(place, "c-before", rebind("vllm.s", "Scheduler.step", STEP), CODE)
    found = checked(place, source)
    assert found["b-after"].verdict is CheckVerdict.APPLIES
    assert found["c-before"].verdict is CheckVerdict.SIGNATURE_CHANGED
    alone = PatchCatalog.load((place,))
    assert check_patch(alone, alone.get("b-after"), source, {}).verdict is CheckVerdict.SIGNATURE_CHANGED
    write_patch(place, "both", wider + fits, CODE)
    alone = PatchCatalog.load((place,))
    assert check_patch(alone, alone.get("both"), source, {}).verdict is CheckVerdict.APPLIES


def test_an_edit_that_leaves_no_python_is_the_rebinds_failure(place: Path, source: VllmSource) -> None:
    write_patch(place, "torn", text("vllm.s", FITTING, "return (") + rebind("vllm.s", "later", "(a)"))
    operation = checked(place, source)["torn"].operations[1]
    assert (operation.verdict, operation.reason) == (CheckVerdict.TARGET_MISSING, PatchReason.TARGET_MISSING)
    assert "is not Python" in operation.detail


def test_one_patch_alone_is_checked_without_those_before_it(place: Path, source: VllmSource) -> None:
    write_patch(place, "one", text("vllm.s", FITTING, "return 41"))
    catalogue = PatchCatalog.load((place,))
    texts: dict[str, str] = {}
    assert check_patch(catalogue, catalogue.get("one"), source, texts).verdict is CheckVerdict.APPLIES
    assert "return 41" in texts["vllm.s"]


def test_an_anchor_that_moved_comes_with_the_nearest_text(place: Path, source: VllmSource) -> None:
    anchor = "        waited = wait_for_tokens(tokens)\n        return waited + self.limit\n"
    write_patch(place, "one", text("vllm.s", anchor, ""))
    (operation,) = checked(place, source)["one"].operations
    assert operation.detail == "the anchor is there 0 times, 1 wanted"
    lines = operation.nearest.splitlines()
    assert lines[1] == "+++ nearest match, line 7"
    assert "-        waited = wait_for_tokens(tokens)" in lines
    assert "+        waited = wait_for_tokens(tokens, self.limit)" in lines


@pytest.mark.parametrize("where", ["", "\n", "x", "import os\n" * 300])
def test_where_nothing_is_like_the_anchor_there_is_no_match(where: str) -> None:
    assert nearest("def schedule(self):\n    return self.queue.pop()\n", where) == ""


def test_operations_show_the_change_in_this_vllm(place: Path, source: VllmSource) -> None:
    write_patch(
        place,
        "one",
        text("vllm.s", FITTING, "return 41")
        + rebind("vllm.s", "Scheduler.step", STEP)
        + hook("kernels", "patch:gone"),
        "def replacement(original):\n    return original\n",
    )
    patch = PatchCatalog.load((place,)).get("one")
    edit, bound, hooked = operations(patch, source)
    assert (edit.kind, bound.kind, hooked.kind) == (PatchKind.TEXT, PatchKind.REBIND, PatchKind.HOOK)
    assert edit.diff.startswith("--- a/vllm/s.py\n+++ b/vllm/s.py\n@@ -5,7 +5,7 @@")
    assert "-        return waited + self.limit\n+        return 41" in edit.diff
    assert bound.target == "vllm.s:Scheduler.step"
    assert bound.diff == "def replacement(original):\n    return original"
    assert hooked.diff == "patch.py has no gone"
    assert "-return waited + self.limit\n+return 41" in operations(patch, None)[0].diff
    (patch.folder / "patch.py").write_text("def replacement(:")
    assert operations(patch, source)[1].diff.startswith("patch.py cannot be read: ")


SIGNATURES = [
    "(self)",
    "(a, b = 1, *, c, d = 2, **e)",
    "(a, /, b, *args, c = 1)",
    "(a, b = 1, /)",
    "(*, a)",
    "(*args, **kwargs)",
    "(a: int, b: list[str] | None = None) -> None",
    "()",
]


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_signature_reads_the_same_from_an_object_and_from_source(signature: str) -> None:
    code = f"def f{signature}: ..."
    names: dict[str, object] = {}
    exec(code, names)
    function = find_function(code, "f")
    assert function is not None
    assert of_source(function) == of_object(names["f"])


def test_the_last_of_two_definitions_counts() -> None:
    code = textwrap.dedent(inspect.cleandoc("def f(a): ...\ndef f(b): ..."))
    function = find_function(code, "f")
    assert isinstance(function, ast.FunctionDef)
    assert of_source(function) == "(b)"
    assert find_function(code, "f.g") is None
    assert find_function("class A: ...", "A") is None


INSTALLED = PatchCatalog.load((BUILT_IN,))


def test_every_built_in_patch_can_be_used() -> None:
    assert INSTALLED.faults == ()
    assert len(INSTALLED.patches) >= 10


@pytest.mark.parametrize(
    "source_text", ["\0", "x = " + "1+" * 50_000 + "1", "(" * 1000, "if a: pass\n" + "elif b: pass\n" * 3000]
)
def test_a_module_that_nobody_can_parse_is_no_python(source_text: str) -> None:
    found: object = None
    with contextlib.suppress(SyntaxError):
        found = find_function(source_text, "f")
    assert found is None


def test_a_long_anchor_is_not_compared_letter_by_letter() -> None:
    began = time.thread_time()
    assert nearest("a b c d\n" * 5_000, "a b c e\n" * 20_000) == ""
    assert nearest("a b c d\n" * 200, "a b c e\n" * 2_000)
    nearest("a b c d\n" * 200, "a b c e " * 100_000)
    assert within(time.thread_time() - began, 5)
