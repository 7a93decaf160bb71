#!/usr/bin/env bash
# Qwen3.6 35B-A3B, AWQ, SGLang, four L4: qwen3.6-35b-a3b in sglang v0.5.12.
# Written by sndr from a preset or a plan; change those and write it again rather than this file.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
name=sndr-qwen3-6-35b-a3b-sglang-4xl4
address=${SNDR_ADDRESS:-127.0.0.1}
port=${SNDR_PORT:-8000}
# Before a port an address of IPv6 stands in brackets, and alone without them.
address=${address#[} address=${address%]} at=$address
case $address in *:*) at="[$address]" ;; esac
models=${SNDR_MODELS:-${HF_HOME:-$HOME/.cache/huggingface}}
mkdir -p "$models"
# SNDR_GPUS names others, by UUID: nvidia-smi -L lists them.
gpus=4
[ -z "${SNDR_GPUS:-}" ] || gpus="\"device=$SNDR_GPUS\""

# Where the engine said what became of each patch stays here, over containers.
if [ -n "$(docker ps --all --quiet --filter "name=^sndr-qwen3-6-35b-a3b-sglang-4xl4\$")" ]; then
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
    --shm-size 34359738368 \
    --publish "$at:$port:8000" \
    --mount type=bind,source="$models",target=/sndr/models \
    --mount type=volume,source="$name-cache",target=/sndr/cache \
    --env-file "$here/secrets.env" \
    --env PYTHONUNBUFFERED=1 \
    --env HF_HUB_DISABLE_TELEMETRY=1 \
    --env HF_HOME=/sndr/models \
    --label dev.sndr.deployment=sndr-qwen3-6-35b-a3b-sglang-4xl4 \
    --label dev.sndr.model=qwen3.6-35b-a3b \
    --label 'dev.sndr.engine=sglang v0.5.12' \
    --health-cmd 'python3 -c '"'"'import urllib.request as r; r.urlopen('"'"'"'"'"'"'"'"'http://127.0.0.1:8000/health'"'"'"'"'"'"'"'"', timeout=9)'"'"'' \
    --health-interval 30s \
    --health-timeout 10s \
    --health-retries 3 \
    --health-start-period 3600s \
    --entrypoint python3 \
    docker.io/lmsysorg/sglang:v0.5.12 \
    -m sglang.launch_server \
    --model-path QuantTrio/Qwen3.6-35B-A3B-AWQ \
    --served-model-name qwen3.6-35b-a3b \
    --context-length 131072 \
    --max-running-requests 4 \
    --tp-size 4 \
    --mem-fraction-static 0.88 \
    --attention-backend flashinfer \
    --enable-metrics \
    --host 0.0.0.0 \
    --port 8000
echo "$name starts; docker logs --follow $name shows it, and it will answer at http://$at:$port."
