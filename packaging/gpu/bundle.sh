#!/usr/bin/env bash
# What a GPU machine without a network needs beside a tree of this project and a vLLM of its own: our Python packages.
#
#   packaging/gpu/bundle.sh            wheels for Python 3.12 on Linux into .whl/ (26 MB), which git ignores
#   packaging/gpu/bundle.sh FILE.tar   the same, and the tree with them, in one file (at most 64 MB)
#
# There: `make gpu-check VLLM=/path/to/venv/bin/python`.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly python=${GPU_PYTHON:-3.12}
mkdir -p .whl
# check.sh installs from it, and checks the same hashes again where the wheels have arrived.
wanted=.whl/packages.lock
# The window and llama.cpp's prebuilt server are of no use there; NumPy is in every Python that runs vLLM.
awk '/^[a-z0-9]/ { skip = /^(pyside6|shiboken6|qasync|pyqtgraph|jeepney|xllamacpp|numpy|colorama|requests|urllib3|charset-normalizer)/ }
     !skip' packaging/locks/run.lock >"$wanted"
platforms=()
for glibc in 39 38 36 35 34 31 28 27 26 24 17; do platforms+=(--platform "manylinux_2_${glibc}_x86_64"); done
platforms+=(--platform manylinux2014_x86_64 --platform manylinux1_x86_64 --platform any)
rm -f .whl/*.whl
python3 -m pip download -q --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
    --python-version "$python" --implementation cp "${platforms[@]}" -d .whl -r "$wanted"
echo "$(find .whl -name '*.whl' | wc -l) wheels, $(du -sm .whl | cut -f1) MB, in .whl/"
[ $# -gt 0 ] || exit 0

# Pictures, fonts and the window are left out: nothing of them is needed there.
{
    git ls-files -z -- Makefile pyproject.toml engine_host packaging presets resources/models resources/texts tests/kernels tests/unit/fit/shapes \
        tests/unit/fit/predicted_starts.json
    find .whl \( -name '*.whl' -o -name packages.lock \) -print0
} | tar --null --sort=name -T - -cf "$1"
echo "$(($(stat -c %s "$1") / 1000000)) MB in $1"
