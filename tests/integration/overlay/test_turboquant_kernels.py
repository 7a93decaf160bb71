"""Every TurboQuant kernel in Triton's interpreter, run by a Python that has torch and Triton."""

import re
from pathlib import Path

import pytest

from tests.kernel_interpreter import ROOT, run_compiled, run_interpreted


@pytest.mark.parametrize(
    "file", sorted((ROOT / "tests" / "kernels").glob("*_interpreted.py")), ids=lambda file: file.stem
)
def test_kernels_compute_what_the_reference_computes(file: Path) -> None:
    done = run_interpreted(str(file))
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 10
    assert "skipped" not in done.stdout


def test_the_kernel_for_hopper_compiles() -> None:
    done = run_compiled(str(ROOT / "tests" / "kernels" / "hopper_compiled.py"))
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout
