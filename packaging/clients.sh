#!/usr/bin/env bash
# The clients of other people that tests let speak to the endpoint, in an environment of their own (once a machine).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
lock=packaging/locks/clients.lock
cache=${SNDR_CACHE:-${SNDR_HOME:+$SNDR_HOME/cache}}
cache=${cache:-${XDG_CACHE_HOME:-$HOME/.cache}/sndr}
folder=$cache/test-clients/$(sha256sum $lock | cut -c1-16)
[ ! -x "$folder/bin/st" ] || exit 0

uv=$(cat .venv/stamps/uv)
# A mirror that the person configured for pip serves uv too.
if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
    index=${PIP_INDEX_URL:-$(python3 -m pip config get global.index-url 2>/dev/null || true)}
    [ -z "$index" ] || export UV_DEFAULT_INDEX=$index
fi
export UV_HTTP_TIMEOUT=120
# Programs in it name its folder, so it is made where it stays; `st` comes last.
rm -rf "$folder"
"$uv" venv -q --python .venv/bin/python "$folder"
"$uv" pip install -q --require-hashes --python "$folder/bin/python" -r $lock
