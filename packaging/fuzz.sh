#!/usr/bin/env bash
# `make fuzz`: hostile requests and files of every kind, made from a seed, against the real host.
#
#   packaging/fuzz.sh [--requests N] [--minutes M] [--seed S] [options of pytest]
#
# N requests go to the endpoint (20,000 unless said); every other generator makes files, log lines and events for M
# minutes (1 unless said). Each prints a table of what it sent and what came of it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export SNDR_FUZZ_REQUESTS=20000 SNDR_FUZZ_MINUTES=1
more=()
while [ $# -gt 0 ]; do
    case $1 in
        --requests) SNDR_FUZZ_REQUESTS=${2:?a number of requests}; shift 2 ;;
        --minutes) SNDR_FUZZ_MINUTES=${2:?a number of minutes}; shift 2 ;;
        --seed) export SNDR_FUZZ_SEED=${2:?a number}; shift 2 ;;
        *) more+=("$1"); shift ;;
    esac
done

# How long it takes is what was asked for, so no test ends by its usual limit of time.
exec .venv/bin/python -m pytest tests/hostile -m fuzz -s --timeout 0 "${more[@]}"
