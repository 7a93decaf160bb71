#!/usr/bin/env bash
# `make test`: check the code, build the engine, run every test; pytest's summary is last.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS
note() { printf '\n== %s (%d s)\n' "$1" "$((SECONDS - started))"; }

note "style and types"
packaging/lint.sh

note "the llama.cpp engine (compiled once a machine)"
.venv/bin/sndr engine build llama.cpp --backend cpu

note "vLLM's CPU build (installed once a machine)"
.venv/bin/sndr engine install vllm --build cpu

note "Triton's interpreter for the kernels' tests (installed once a machine)"
packaging/kernels.sh

note "tests"
exec .venv/bin/python -m pytest "$@"
