#!/usr/bin/env bash
# Qwen3.6 27B, Q4_K_M, one 24 GB card: qwen3.6-27b in llama.cpp b12464.
# Written by sndr from a preset or a plan; change those and write it again rather than this file.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
name=sndr-qwen3-6-27b-q4-24
address=${SNDR_ADDRESS:-127.0.0.1}
port=${SNDR_PORT:-8000}
# Before a port an address of IPv6 stands in brackets, and alone without them.
address=${address#[} address=${address%]} at=$address
case $address in *:*) at="[$address]" ;; esac
models=${SNDR_MODELS:-$HOME/.local/share/sndr/models}
mkdir -p "$models"
# SNDR_GPUS names others, by UUID: nvidia-smi -L lists them.
gpus=1
[ -z "${SNDR_GPUS:-}" ] || gpus="\"device=$SNDR_GPUS\""

# Where the engine said what became of each patch stays here, over containers.
if [ -n "$(docker ps --all --quiet --filter "name=^sndr-qwen3-6-27b-q4-24\$")" ]; then
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
    --shm-size 1073741824 \
    --publish "$at:$port:8000" \
    --mount type=bind,source="$models",target=/sndr/models,readonly \
    --mount type=volume,source="$name-cache",target=/sndr/cache \
    --env-file "$here/secrets.env" \
    --label dev.sndr.deployment=sndr-qwen3-6-27b-q4-24 \
    --label dev.sndr.model=qwen3.6-27b \
    --label 'dev.sndr.engine=llama.cpp b12464' \
    --health-cmd 'curl --fail --silent --max-time 9 http://127.0.0.1:8000/health' \
    --health-interval 30s \
    --health-timeout 10s \
    --health-retries 3 \
    --health-start-period 3600s \
    --entrypoint /app/llama-server \
    ghcr.io/ggml-org/llama.cpp:server-cuda-b12464 \
    --model /sndr/models/Qwen3.6-27B-Q4_K_M.gguf \
    --alias qwen3.6-27b \
    --ctx-size 200000 \
    --parallel 1 \
    --slots \
    --metrics \
    --jinja \
    --no-ui \
    --no-kv-unified \
    --offline \
    --log-verbosity 4 \
    --log-colors off \
    --flash-attn on \
    --cache-type-k q4_0 \
    --cache-type-v q4_0 \
    --spec-type draft-mtp \
    --spec-draft-n-max 2 \
    --gpu-layers 99 \
    --host 0.0.0.0 \
    --port 8000
echo "$name starts; docker logs --follow $name shows it, and it will answer at http://$at:$port."
