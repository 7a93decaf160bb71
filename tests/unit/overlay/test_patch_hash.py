"""Evidence holds for a patch's code and not for its tests."""

from pathlib import Path

from engine_host.overlay.patch_hash import patch_hash


def test_code_changes_the_hash_and_tests_do_not(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "patch.py").write_text("a = 1\n")
    (tmp_path / "kernels" / "store.py").write_text("b = 1\n")
    first = patch_hash(tmp_path)
    assert len(first) == 16
    (tmp_path / "test_patch.py").write_text("assert True\n")
    (tmp_path / "README.md").write_text("words\n")
    assert patch_hash(tmp_path) == first
    (tmp_path / "kernels" / "store.py").write_text("b = 2\n")
    second = patch_hash(tmp_path)
    assert second != first
    (tmp_path / "kernels" / "store.py").rename(tmp_path / "kernels" / "stores.py")
    assert patch_hash(tmp_path) != second
