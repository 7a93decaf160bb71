#!/usr/bin/env bash
# `make test`: check the code, build the engines, run every test; pytest's summary is last.
# `make test-fast`: unit tests and the window's pages only; no engine is built or started.
#
#   packaging/test.sh [fast] [options of pytest]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS
note() { printf '\n== %s (%d s)\n' "$1" "$((SECONDS - started))"; }

# Else each run compiles the tests and their assertions anew, in each worker: a third of what collecting them takes.
unset PYTHONDONTWRITEBYTECODE

# A worker a processor, up to four: an engine takes some GB. The quick tests wait about as long as they compute,
# so they have three for two processors.
tests=(.venv/bin/python -m pytest -n logical --maxprocesses 4)
quick=(.venv/bin/python -m pytest -n "$(((3 * $(nproc) + 1) / 2))" --maxprocesses 6 tests/unit tests/views)

if [ "${1:-}" = fast ]; then
    shift
    exec "${quick[@]}" "$@"
fi

# Installing waits for the network more than for the processor: it goes on beside the quick tests, which need none of it.
installed=$(mktemp)
(
    .venv/bin/sndr engine install vllm --build cpu
    packaging/kernels.sh
    packaging/clients.sh
) >"$installed" 2>&1 </dev/null &
installing=$!
trap 'kill "$installing" 2>/dev/null || true; rm -f "$installed"' EXIT

note "style and types; vLLM's CPU build, Triton's interpreter and clients are installed meanwhile (once a machine)"
packaging/lint.sh

note "unit tests and pages of the window"
"${quick[@]}"

note "what was installed meanwhile"
wait "$installing" || { cat "$installed"; exit 1; }
cat "$installed"

note "the llama.cpp engine (compiled once a machine)"
.venv/bin/sndr engine build llama.cpp --backend cpu

note "hostile input, and tests with hosts, engines and the window on a display"
# A file stays with one worker, so that the engine its tests share is started once; the longest files come first.
"${tests[@]}" --dist loadfile --no-loadscope-reorder --durations 20 tests/hostile tests/integration engine_host/overlay/patches tests/e2e "$@"
