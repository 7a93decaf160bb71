#!/usr/bin/env bash
# Style, formatting, types and shell syntax.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
.venv/bin/ruff check --quiet .
.venv/bin/ruff format --check --quiet .
.venv/bin/mypy
for script in packaging/*.sh packaging/*/*.sh .ci/run; do
    bash -n "$script"
done
