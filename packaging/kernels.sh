#!/usr/bin/env bash
# Triton and pytest for the kernels' tests, in a folder beside the vLLM environment, whose torch they use: that
# environment itself must stay without Triton, which takes part in vLLM's choices wherever it is installed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
lock=packaging/locks/kernels.lock
cache=${SNDR_CACHE:-${SNDR_HOME:+$SNDR_HOME/cache}}
cache=${cache:-${XDG_CACHE_HOME:-$HOME/.cache}/sndr}
folder=$cache/kernel-interpreter/$(sha256sum $lock | cut -c1-16)
[ ! -d "$folder" ] || exit 0

python=${SNDR_TEST_VLLM:-$cache/vllm-environments/0.32.0-cpu}/bin/python
[ -x "$python" ] || { echo "There is no vLLM environment with $python: sndr engine install vllm --build cpu" >&2; exit 1; }
uv=$(cat .venv/stamps/uv)
# A mirror that the person configured for pip serves uv too.
if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
    index=${PIP_INDEX_URL:-$(python3 -m pip config get global.index-url 2>/dev/null || true)}
    [ -z "$index" ] || export UV_DEFAULT_INDEX=$index
fi
mkdir -p "${folder%/*}"
part=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$part"' EXIT
export UV_HTTP_TIMEOUT=120
"$uv" pip install -q --no-deps --require-hashes --python "$python" --target "$part" -r $lock
# Compilers for GPUs: the interpreter needs none, and they are half of the folder.
rm -rf "$part"/triton/backends/nvidia/bin "$part"/triton/backends/nvidia/lib/cupti
chmod 755 "$part"
mv -T "$part" "$folder" 2>/dev/null || [ -d "$folder" ]
