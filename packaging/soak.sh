#!/usr/bin/env bash
# `make soak`: hundreds of streams at once against a real host with a FAKE engine, for an hour unless said otherwise:
# clients that leave, clients that do not read, engines that restart. Memory, descriptors, tasks and threads stay flat.
#
#   packaging/soak.sh [--minutes M] [--streams N] [options of pytest]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export SNDR_SOAK_MINUTES=60
more=()
while [ $# -gt 0 ]; do
    case $1 in
        --minutes) SNDR_SOAK_MINUTES=${2:?a number of minutes}; shift 2 ;;
        --streams) export SNDR_SOAK_STREAMS=${2:?a number of streams}; shift 2 ;;
        *) more+=("$1"); shift ;;
    esac
done

exec .venv/bin/python -m pytest tests/hostile -m soak -s --timeout 0 "${more[@]}"
