#!/usr/bin/env bash
# Qwen3 Embedding 0.6B on a GPU: qwen3-embedding-0.6b in vllm 0.32.0 with 2 patches.
# Written by sndr from a preset or a plan; change those and write it again rather than this file.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
name=sndr-qwen3-embedding-0-6b
address=${SNDR_ADDRESS:-127.0.0.1}
port=${SNDR_PORT:-8000}
# Before a port an address of IPv6 stands in brackets, and alone without them.
address=${address#[} address=${address%]} at=$address
case $address in *:*) at="[$address]" ;; esac
models=${SNDR_MODELS:-${HF_HOME:-$HOME/.cache/huggingface}}
mkdir -p "$models"
# Where the engine says what became of each patch stays here, over containers.
mkdir -p "$here/ledger"
# SNDR_GPUS names others, by UUID: nvidia-smi -L lists them.
gpus=1
[ -z "${SNDR_GPUS:-}" ] || gpus="\"device=$SNDR_GPUS\""

if [ -n "$(docker ps --all --quiet --filter "name=^sndr-qwen3-embedding-0-6b\$")" ]; then
    # It may finish what it answers just now; a removal by force alone would not wait.
    docker stop -t 60 "$name" >/dev/null
    docker rm --force "$name" >/dev/null
fi
docker run --detach --name "$name" \
    --init \
    --restart unless-stopped \
    --stop-timeout 60 \
    --security-opt no-new-privileges \
    --gpus "$gpus" \
    --shm-size 8589934592 \
    --publish "$at:$port:8000" \
    --mount type=bind,source="$here/overlay",target=/sndr/overlay,readonly \
    --mount type=bind,source="$here/ledger",target=/sndr/ledger \
    --mount type=bind,source="$models",target=/sndr/models \
    --mount type=volume,source="$name-cache",target=/sndr/cache \
    --env-file "$here/secrets.env" \
    --env TRITON_CACHE_DIR=/sndr/cache/vllm/plain/triton \
    --env VLLM_NO_USAGE_STATS=1 \
    --env VLLM_DO_NOT_TRACK=1 \
    --env DO_NOT_TRACK=1 \
    --env HF_HUB_DISABLE_TELEMETRY=1 \
    --env VLLM_LOGGING_COLOR=0 \
    --env NO_COLOR=1 \
    --env PYTHONUNBUFFERED=1 \
    --env VLLM_CACHE_ROOT=/sndr/cache/vllm/0123456789abcdef \
    --env SNDR_OVERLAY=/sndr/overlay \
    --env SNDR_OVERLAY_LEDGER=/sndr/ledger \
    --env SNDR_OVERLAY_SHADOW=/sndr/cache/shadow \
    --env PYTHONPATH=/sndr/overlay \
    --env HF_HOME=/sndr/models \
    --label dev.sndr.deployment=sndr-qwen3-embedding-0-6b \
    --label dev.sndr.model=qwen3-embedding-0.6b \
    --label 'dev.sndr.engine=vllm 0.32.0' \
    --label dev.sndr.patches=0123456789abcdef \
    --label dev.sndr.patch-ids=json-whitespace-limit,oom-keeps-engine \
    --health-cmd 'python3 -c '"'"'import urllib.request as r; r.urlopen('"'"'"'"'"'"'"'"'http://127.0.0.1:8000/health'"'"'"'"'"'"'"'"', timeout=9)'"'"'' \
    --health-interval 30s \
    --health-timeout 10s \
    --health-retries 3 \
    --health-start-period 3600s \
    --entrypoint python3 \
    docker.io/vllm/vllm-openai:v0.32.0 \
    -m vllm.entrypoints.cli.main serve Qwen/Qwen3-Embedding-0.6B \
    --served-model-name qwen3-embedding-0.6b \
    --max-model-len 8192 \
    --max-num-seqs 32 \
    --disable-uvicorn-access-log \
    --enable-prompt-tokens-details \
    --gpu-memory-utilization 0.25 \
    --max-num-batched-tokens 8192 \
    --enable-prefix-caching \
    --runner pooling \
    --convert embed \
    --additional-config '{"sndr_patches": "0123456789abcdef"}' \
    --host 0.0.0.0 \
    --port 8000
echo "$name starts; docker logs --follow $name shows it, and it will answer at http://$at:$port."
