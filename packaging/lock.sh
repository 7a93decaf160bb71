#!/usr/bin/env bash
# Writes requirements/*.lock from pyproject.toml. `packaging/lock.sh --upgrade` takes the newest allowed versions.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
uv=${UV:-$(cat .venv/stamps/uv 2>/dev/null || echo uv)}
options=(--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -q)

compile() { # output, inputs and options
    local output=$1
    shift
    "$uv" pip compile "${options[@]}" "$@" --output-file "$output" >/dev/null
}

compile requirements/bootstrap.lock requirements/bootstrap.in "$@"
compile requirements/test.lock pyproject.toml --extra engines --extra test "$@"
# The versions of test.lock bind run.lock, so that the two never disagree.
compile requirements/run.lock pyproject.toml --extra engines \
    --constraint requirements/test.lock "$@"

if grep -n '://' requirements/*.lock; then
    echo "A lock file names an address (above); it must not." >&2
    exit 1
fi
