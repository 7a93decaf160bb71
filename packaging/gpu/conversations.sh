#!/usr/bin/env bash
# Conversations with a hybrid that drafts, with a prefix cache and without, for one type of the KV cache: what
# hybrid-speculation-prefix-cache rests on (docs/proof.md, "Prefix reuse with MTP on hybrids").
#
#   packaging/gpu/conversations.sh VLLM FOLDER [auto|fp8|turboquant_k8v4] [--cpu] [--together] [--blocks N]
#                                  [arguments of prefix_conversations]
#
# Twice without a cache, once with it, and once with so few blocks (40) that it has to evict; each is compared with the
# first. Several types may run side by side: an engine takes 3 GiB. `--together`: all of them at once, where cores are
# many and time is short. `--cpu`: with vLLM's CPU build, whose keys and values go through the type's arithmetic and are
# stored in 16 bits (cpu-kv-round-trip). A line of JSON a comparison, all answers in FOLDER.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
vllm=${1:?usage: packaging/gpu/conversations.sh VLLM FOLDER [TYPE] [arguments]}
mkdir -p "${2:?FOLDER is missing}"
out=$(cd "$2" && pwd)
kv=${3:-auto}
shift $(($# < 3 ? $# : 3))
cpu=
if [ "${1:-}" = --cpu ]; then cpu=1; shift; fi
together=
if [ "${1:-}" = --together ]; then together=1; shift; fi
blocks=40
if [ "${1:-}" = --blocks ]; then blocks=$2; shift 2; fi
case $vllm in */bin/python*) vllm=${vllm%/bin/python*} ;; esac
host=.venv/bin/python
if [ ! -x $host ]; then
    host=.gpu-venv/bin/python
    packaging/gpu/check.sh "$vllm" --help >/dev/null
fi
export VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1 VLLM_CACHE_ROOT=$out/cache
unset PYTHONPATH
# The patch under test switches the cache off where nobody has compared answers; `--reuse` is what it sets otherwise.
engine=(--gdn-prefill triton --kv "$kv")
if [ -n "$cpu" ]; then
    engine=(--dtype bfloat16)
    patches=(--on cpu-hybrid-speculation-states --off hybrid-speculation-prefix-cache)
    case $kv in
        auto) ;;
        *) patches+=(--on cpu-kv-round-trip); export SNDR_KV_ROUND_TRIP=${kv#turboquant_} ;;
    esac
    variables=$("$host" packaging/gpu/overlay_variables.py "$out/overlay" --platform cpu "${patches[@]}")
    eval "$variables"
else case $kv in
    turboquant_*)
        variables=$("$host" packaging/gpu/overlay_variables.py "$out/overlay" --kv "$kv" --off hybrid-speculation-prefix-cache)
        eval "$variables" ;;
esac; fi

ask() {
    local name=$1
    shift
    "$vllm/bin/python" -m engine_host.bench.gpu.prefix_conversations ask resources/models/sndr-demo "$out/$name.json" \
        --cache-gib 3 "${engine[@]}" "$@" >"$out/$name.log" 2>&1 ||
        { echo "$name did not run to its end: $out/$name.log" >&2; return 1; }
}

compare() {
    # 1 says that some conversations differ, which is what is counted here.
    echo "$1: $("$host" -m engine_host.bench.gpu.prefix_conversations compare "$out/without.json" "$out/$1.json" || true)"
}

pieces=
# Where the cache is quantised, a hit can be no nearer than a prompt's second piece is.
case $kv in turboquant_*) pieces=pieces ;; esac
runs() {
    "$@" again --without
    "$@" cached --reuse
    "$@" evicting --reuse --blocks "$blocks"
    [ -z "$pieces" ] || "$@" pieces --without --chunk 256
}
if [ -n "$together" ]; then
    asked=()
    begin() { ask "$@" "${more[@]}" & asked+=($!); }
    more=("$@")
    begin without --without
    runs begin
    failed=0
    for one in "${asked[@]}"; do wait "$one" || failed=1; done
    for name in again cached evicting $pieces; do
        [ ! -s "$out/$name.json" ] || compare "$name"
    done
    exit $failed
fi
one_by_one() { ask "$@" "${more[@]}" && compare "$1"; }
more=("$@")
ask without --without "$@"
runs one_by_one
