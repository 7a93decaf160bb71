#!/usr/bin/env bash
# `make test`: check the code, build the engines, run every test; pytest's summary is last.
# `make test-fast`: unit tests and the window's pages only; no engine is built or started.
#
#   packaging/test.sh [fast] [options of pytest]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS
note() { printf '\n== %s (%d s)\n' "$1" "$((SECONDS - started))"; }

# A worker a processor, up to four: an engine takes some GB. A file of tests that start processes stays with one
# worker, and the quick files stay first.
tests=(.venv/bin/python -m pytest -n logical --maxprocesses 4 --dist loadgroup --no-loadscope-reorder)

if [ "${1:-}" = fast ]; then
    shift
    exec "${tests[@]}" tests/unit tests/views "$@"
fi

note "style and types"
packaging/lint.sh

note "unit tests and pages of the window"
"${tests[@]}" tests/unit tests/views

note "the llama.cpp engine (compiled once a machine)"
.venv/bin/sndr engine build llama.cpp --backend cpu

note "vLLM's CPU build (installed once a machine)"
.venv/bin/sndr engine install vllm --build cpu

note "Triton's interpreter for the kernels' tests (installed once a machine)"
packaging/kernels.sh

note "clients that speak to the endpoint in tests (installed once a machine)"
packaging/clients.sh

note "hostile input, and tests with hosts, engines and the window on a display"
exec "${tests[@]}" --durations 20 tests/hostile tests/integration engine_host/overlay/patches tests/e2e "$@"
