#!/usr/bin/env bash
# The second half of `make package`: freezes the wheel in dist/, and packs it as .tar.gz and, where there is dpkg, as .deb.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly python=.venv/bin/python
# A mirror that the person configured for pip serves uv too.
if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
    index=${PIP_INDEX_URL:-$(python3 -m pip config get global.index-url 2>/dev/null || true)}
    [ -z "$index" ] || export UV_DEFAULT_INDEX=$index
fi
$python packaging/frozen/freeze.py "$(ls dist/sndr_control_center-*.whl)" --archive dist
if command -v dpkg-deb >/dev/null; then
    $python packaging/linux/build_deb.py dist
fi
