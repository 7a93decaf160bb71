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

# Tests wait nearly as long as they compute, so the quick ones have four workers for two processors; where engines run
# three, and at most four: one takes some GB.
tests=(.venv/bin/python -m pytest -n $(((3 * $(nproc) + 1) / 2)) --maxprocesses 4)
quick=(.venv/bin/python -m pytest -n $((2 * $(nproc))) --maxprocesses 8 tests/unit tests/views)

# They write thousands of small files and databases, and wait for a disk as long as they compute: they have theirs in
# memory, where that is large enough. What starts hosts and engines stays on the disk, as people have it.
memory=/dev/shm
scratch=
if [ -w "$memory" ] && [ "$(df -Pk "$memory" | awk 'END { print $4 }')" -gt 2000000 ]; then
    scratch=$(mktemp -d "$memory/sndr-XXXXXX")
fi
installing=
trap 'kill $installing 2>/dev/null || true; rm -rf ${scratch:+"$scratch"} ${installed:+"$installed"}' EXIT
run_quick() { TMPDIR=${scratch:-${TMPDIR:-/tmp}} "${quick[@]}" "$@"; }

if [ "${1:-}" = fast ]; then
    shift
    run_quick "$@"
    exit
fi

# Installing waits for the network more than for the processor: it goes on beside the quick tests, which need none of it.
installed=$(mktemp)
(
    .venv/bin/sndr engine install vllm --build cpu
    packaging/kernels.sh
    packaging/clients.sh
) >"$installed" 2>&1 </dev/null &
installing=$!

# Beside that: the tests compiled once, with their assertions, or each worker does so for itself.
.venv/bin/python -m pytest -n 0 --collect-only -q tests engine_host/overlay/patches >/dev/null 2>&1 </dev/null &

note "style and types; vLLM's CPU build, Triton's interpreter and clients are installed meanwhile (once a machine)"
packaging/lint.sh

note "unit tests and pages of the window"
run_quick

note "what was installed meanwhile"
wait "$installing" || { cat "$installed"; exit 1; }
cat "$installed"

note "the llama.cpp engine (compiled once a machine)"
.venv/bin/sndr engine build llama.cpp --backend cpu

note "hostile input, and tests with hosts, engines and the window on a display"
# A file stays with one worker, so that the engine its tests share is started once; the longest files come first.
"${tests[@]}" --dist loadfile --no-loadscope-reorder --durations 20 tests/hostile tests/integration engine_host/overlay/patches tests/e2e "$@"
