#!/usr/bin/env bash
# `make bench`: start-up times, and the endpoint's speed against the bare server.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
.venv/bin/python packaging/bench/startup.py
.venv/bin/python -m engine_host.bench.endpoint_overhead "$@"
