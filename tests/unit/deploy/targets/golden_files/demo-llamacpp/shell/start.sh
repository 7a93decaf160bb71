#!/usr/bin/env bash
# Demo model on llama.cpp: sndr-demo in llama.cpp b12464.
# Written by sndr from a preset or a plan; change those and write it again rather than this file.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

engine=${SNDR_ENGINE:-llama-server}
address=${SNDR_ADDRESS:-127.0.0.1}
port=${SNDR_PORT:-8000}
# Before a port an address of IPv6 stands in brackets, and alone without them.
address=${address#[} address=${address%]} at=$address
case $address in *:*) at="[$address]" ;; esac
cache=${SNDR_DEPLOY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sndr/deploy/sndr-demo-llamacpp}

say() { printf '%s\n' "sndr-demo-llamacpp: $*" >&2; }

healthy() {
    local status=""
    { exec 3<>"/dev/tcp/$address/$port"; } 2>/dev/null || return 1
    printf 'GET /health HTTP/1.0\r\nHost: %s\r\n\r\n' "$at" >&3
    read -r -t 10 _ status _ <&3 || true
    exec 3>&-
    [ "$status" = 200 ]
}

# Whoever it is that listens there: the engine could not, and its answers would be taken for the engine's.
taken() {
    { exec 3<>"/dev/tcp/$address/$port"; } 2>/dev/null || return 1
    exec 3>&-
}

case ${1:-start} in
    start) ;;
    health)
        if healthy; then
            echo "sndr-demo-llamacpp is well."
            exit 0
        fi
        say "no good answer at http://$at:$port/health"
        exit 1
        ;;
    *)
        say "this takes start (the default) or health"
        exit 2
        ;;
esac

# What this shell happens to have set must not change the start behind its back.
for variable in "${!LLAMA_ARG_@}" "${!LLAMA_API_KEY@}"; do
    [ "$variable" = HF_TOKEN ] || [ "$variable" = LLAMA_API_KEY ] || unset "$variable"
done
if [ -f "$here/secrets.env" ]; then
    set -a
    # shellcheck source=/dev/null
    . "$here/secrets.env"
    set +a
fi

if ! command -v "$engine" >/dev/null; then
    say 'llama-server is not here; install llama.cpp b12464, or name its program in SNDR_ENGINE'
    exit 1
fi
mkdir -p "$cache"

# A second signal, or one that it does not follow in time, kills it with everything that it started.
stopping="" child="" deadline=0
stop() {
    if [ -n "$stopping" ]; then
        deadline=0
        return
    fi
    stopping=yes deadline=$((SECONDS + 60))
    say "stopping"
    [ -z "$child" ] || kill -TERM -- "$child" 2>/dev/null || true
}
trap stop INT TERM
# A shell cannot catch a signal that its parent ignores, as scripts do for what they put into the background.
case $(trap -p INT) in
    *"''"*) say "Ctrl+C is ignored where this was started; stop it with: kill $$" ;;
esac

announce() {
    trap - INT TERM
    until healthy; do
        kill -0 "$child" 2>/dev/null || exit 0
        sleep 0.5
    done
    kill -0 "$child" 2>/dev/null || exit 0
    say "ready at http://$at:$port"
}

failures=0
while :; do
    if taken; then
        say "port $port at $address is taken by another program; end it, or name another port in SNDR_PORT"
        exit 1
    fi
    began=$SECONDS
    setsid "$engine" --model /srv/sndr/resources/models/sndr-demo/sndr-demo-q8_0.gguf \
        --alias sndr-demo \
        --ctx-size 16384 \
        --parallel 2 \
        --slots \
        --metrics \
        --jinja \
        --no-ui \
        --no-kv-unified \
        --offline \
        --log-verbosity 4 \
        --log-colors off \
        --flash-attn on \
        --host "$address" \
        --port "$port" &
    child=$!
    announce &
    announcer=$!
    code=0
    wait "$child" || code=$?
    # A signal to this script ends the wait, not the engine.
    while kill -0 "$child" 2>/dev/null; do
        if [ -z "$stopping" ]; then
            code=0
            wait "$child" || code=$?
        elif ((SECONDS >= deadline)); then
            say "killing it"
            kill -KILL -- "-$child" 2>/dev/null || true
            deadline=$((SECONDS + 60))
        else
            sleep 0.2
        fi
    done
    kill "$announcer" 2>/dev/null || true
    # Processes of a group whose first one died would keep their memory and the GPUs.
    kill -KILL -- "-$child" 2>/dev/null || true
    child=""
    if [ -n "$stopping" ]; then
        say "stopped"
        exit 0
    fi
    [ "$code" -ne 0 ] || exit 0
    if ((SECONDS - began > 600)); then failures=0; fi
    failures=$((failures + 1))
    if ((failures > 5)); then
        say "it failed $failures times in a row, the last time with code $code; not tried again"
        exit "$code"
    fi
    say "it ended with code $code; again in $((failures * 5)) s ($failures of 5)"
    sleep $((failures * 5)) &
    pause=$!
    wait "$pause" || true
    kill "$pause" 2>/dev/null || true
    [ -z "$stopping" ] || exit 0
done
