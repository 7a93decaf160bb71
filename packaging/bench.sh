#!/usr/bin/env bash
# `make bench`: start-up times, the endpoint's speed against the bare server, the overlay's cost; twenty-five minutes on two cores.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
echo "== 1 of 6: start-up times, about a minute" >&2
missed=0
.venv/bin/python packaging/bench/startup.py || missed=1
echo "== 2 of 6: the endpoint against the bare server, about four minutes on two cores" >&2
.venv/bin/sndr bench endpoint "$@" || missed=1
echo "== 3 of 6: what the overlay costs a process of vLLM, about three minutes" >&2
.venv/bin/python -m engine_host.bench.overlay_cost || missed=1
echo "== 4 of 6: the bench lab beside vllm bench serve, about ten minutes" >&2
PYTHONPATH=. .venv/bin/python packaging/bench/agreement.py || missed=1
echo "== 5 of 6: the window's event loop while Monitor draws an hour and Chat streams, about a minute" >&2
PYTHONPATH=. .venv/bin/python packaging/bench/smoothness.py || missed=1
echo "== 6 of 6: window and host while nobody does anything, about two minutes" >&2
PYTHONPATH=. .venv/bin/python packaging/bench/idle.py || missed=1
exit "$missed"
