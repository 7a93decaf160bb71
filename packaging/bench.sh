#!/usr/bin/env bash
# `make bench`: what a start, the way through the endpoint, a busy window and an idle one take; under five minutes on two cores.
# `make bench FULL=1`: more rounds of each, what the overlay costs, and the bench lab beside vLLM's own; twenty-five minutes.
#
#   packaging/bench.sh [--full] [options of `sndr bench endpoint`]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
full=
if [ "${1:-}" = --full ]; then
    full=yes
    shift
fi
of=$([ "$full" ] && echo 6 || echo 4)
number=0
missed=0

# part WHAT HOW_LONG COMMAND …: say what begins, run it, say how long it took.
part() {
    number=$((number + 1))
    printf '== %d of %d: %s, about %s\n' "$number" "$of" "$1" "$2" >&2
    local began=$SECONDS
    shift 2
    "$@" || missed=1
    printf '   (%d s)\n' "$((SECONDS - began))" >&2
}

startup="start-up times"
endpoint="the endpoint against the bare server"
smoothness="the window's event loop while Monitor draws an hour and Chat streams"
idle="window and host while nobody does anything"
if [ "$full" ]; then
    part "$startup" "a minute" .venv/bin/python packaging/bench/startup.py
    part "$endpoint" "four minutes on two cores" .venv/bin/sndr bench endpoint "$@"
    part "what the overlay costs a process of vLLM" "three minutes" .venv/bin/python -m engine_host.bench.overlay_cost
    part "the bench lab beside vllm bench serve" "ten minutes" env PYTHONPATH=. .venv/bin/python packaging/bench/agreement.py
    part "$smoothness" "a minute" env PYTHONPATH=. .venv/bin/python packaging/bench/smoothness.py
    part "$idle" "two minutes" env PYTHONPATH=. .venv/bin/python packaging/bench/idle.py
else
    part "$startup" "half a minute" .venv/bin/python packaging/bench/startup.py --repeats 3
    part "$endpoint" "a minute and a half on two cores" \
        .venv/bin/sndr bench endpoint --streams 1 --streams 8 --tokens 32 --pairs 8 "$@"
    part "$smoothness" "half a minute" env PYTHONPATH=. .venv/bin/python packaging/bench/smoothness.py --seconds 15
    part "$idle" "a minute" env PYTHONPATH=. .venv/bin/python packaging/bench/idle.py --seconds 30
    echo "These are few rounds each; \`make bench FULL=1\` measures more and longer." >&2
fi
printf '== %d s\n' "$SECONDS" >&2
exit "$missed"
