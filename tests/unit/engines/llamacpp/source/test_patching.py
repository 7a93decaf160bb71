"""Source patches apply exactly or not at all."""

from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.source.patching import apply_patch, parse_patch, patch_files
from engine_host.protocol.errors import Reason

PATCH = """\
what it is for
--- a/src/one.txt
+++ b/src/one.txt
@@ -2,3 +2,4 @@ heading
 b
-c
+C
+C2
 d
@@ -6 +7 @@
-f
+F
--- a/two.txt
+++ b/two.txt
@@ -1,2 +1 @@
 x
-y
\\ No newline at end of file
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/one.txt").write_text("a\nb\nc\nd\ne\nf\ng\n")
    (tmp_path / "two.txt").write_text("x\ny")
    return tmp_path


def put(source: Path, text: str) -> Path:
    path = source / "0001-test.patch"
    path.write_text(text)
    return path


def failed(source: Path, text: str) -> HostError:
    before = (source / "src/one.txt").read_text(), (source / "two.txt").read_text()
    with pytest.raises(HostError) as caught:
        apply_patch(put(source, text), source)
    assert caught.value.reason is Reason.SOURCE_PATCH_FAILED
    assert "0001-test.patch" in str(caught.value)
    assert ((source / "src/one.txt").read_text(), (source / "two.txt").read_text()) == before
    return caught.value


def test_it_applies(source: Path) -> None:
    assert apply_patch(put(source, PATCH), source) == (source / "src/one.txt", source / "two.txt")
    assert (source / "src/one.txt").read_text() == "a\nb\nC\nC2\nd\ne\nF\ng\n"
    assert (source / "two.txt").read_text() == "x"


def test_line_ends_stay(source: Path) -> None:
    (source / "src/one.txt").write_bytes(b"a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\r\n")
    apply_patch(put(source, PATCH), source)
    assert (source / "src/one.txt").read_bytes() == b"a\r\nb\r\nC\r\nC2\r\nd\r\ne\r\nF\r\ng\r\n"


def test_a_hunk_that_differs_names_itself_and_nothing_is_written(source: Path) -> None:
    error = failed(source, PATCH.replace("-f\n", "-ff\n"))
    assert error.problem.evidence == {
        "patch": "0001-test.patch",
        "file": "src/one.txt",
        "hunk": 2,
        "line": 6,
        "expected": "ff",
        "found": "f",
    }


def test_there_is_no_fuzz(source: Path) -> None:
    (source / "src/one.txt").write_text("new\na\nb\nc\nd\ne\nf\ng\n")
    assert failed(source, PATCH).problem.evidence["hunk"] == 1
    (source / "src/one.txt").write_text("a\nb\n")
    assert failed(source, PATCH).problem.evidence["hunk"] == 1


def test_it_does_not_apply_twice(source: Path) -> None:
    apply_patch(put(source, PATCH), source)
    failed(source, PATCH)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@@ -1 +1 @@\n-a\n+b\n",
        PATCH.replace("b/two.txt", "b/../two.txt"),
        PATCH.replace("b/two.txt", "/two.txt"),
        PATCH.replace("b/two.txt", "b/none.txt"),
        PATCH.replace("-2,3 +2,4", "-2,3 +2,9"),
        PATCH.replace(" d\n", "?d\n"),
    ],
    ids=["empty", "no file", "outside", "absolute", "no such file", "lengths", "mark"],
)
def test_what_is_no_patch_for_this_source(source: Path, text: str) -> None:
    failed(source, text)


def test_the_patches_of_the_build_can_be_read() -> None:
    names = [patch.name for patch in patch_files()]
    assert names == sorted(names)
    assert names[0] == "0001-amx-tile-config.patch"
    for patch in patch_files():
        assert parse_patch(patch.read_text(), patch.name)
