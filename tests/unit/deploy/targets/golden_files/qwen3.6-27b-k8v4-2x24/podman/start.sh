#!/usr/bin/env bash
# Qwen3.6 27B, TurboQuant k8v4, two 24 GB cards: qwen3.6-27b in vllm 0.32.0 with 2 patches.
# Written by sndr from a preset or a plan; change those and write it again rather than this file.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
name=sndr-qwen3-6-27b-k8v4-2x24
address=${SNDR_ADDRESS:-127.0.0.1}
port=${SNDR_PORT:-8000}
# Before a port an address of IPv6 stands in brackets, and alone without them.
address=${address#[} address=${address%]} at=$address
case $address in *:*) at="[$address]" ;; esac
models=${SNDR_MODELS:-${HF_HOME:-$HOME/.cache/huggingface}}
mkdir -p "$models" "$here/ledger"
# CDI names them; SNDR_GPUS names others, by UUID: nvidia-ctk cdi list lists them.
devices=()
IFS=, read -r -a gpus <<<"${SNDR_GPUS:-GPU-3f2c1a90-5b1e-4c52-9d3e-0a6f1b7c8d11,GPU-7d41e0b2-90aa-4f0c-8a55-2c9be3f40c22}"
for gpu in "${gpus[@]}"; do devices+=(--device "nvidia.com/gpu=$gpu"); done

# Where the engine said what became of each patch stays here, over containers.
if [ -n "$(podman ps --all --quiet --filter "name=^sndr-qwen3-6-27b-k8v4-2x24\$")" ]; then
    # It may finish what it answers just now; a removal by force alone would not wait.
    podman stop -t 60 "$name" >/dev/null
    podman rm --force "$name" >/dev/null
fi
podman run --detach --name "$name" \
    --init \
    --restart unless-stopped \
    --stop-timeout 60 \
    --security-opt no-new-privileges \
    "${devices[@]}" \
    --shm-size 17179869184 \
    --publish "$at:$port:8000" \
    --mount type=bind,source="$here/overlay",target=/sndr/overlay,readonly \
    --mount type=bind,source="$here/ledger",target=/sndr/ledger \
    --mount type=bind,source="$models",target=/sndr/models \
    --mount type=volume,source="$name-cache",target=/sndr/cache \
    --env-file "$here/secrets.env" \
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
    --label dev.sndr.deployment=sndr-qwen3-6-27b-k8v4-2x24 \
    --label dev.sndr.model=qwen3.6-27b \
    --label 'dev.sndr.engine=vllm 0.32.0' \
    --label dev.sndr.patches=0123456789abcdef \
    --label dev.sndr.patch-ids=json-whitespace-limit,oom-keeps-engine \
    --health-cmd 'python3 -c '"'"'import urllib.request as r; r.urlopen('"'"'"'"'"'"'"'"'http://127.0.0.1:8000/health'"'"'"'"'"'"'"'"', timeout=9)'"'"'' \
    --health-interval 30s \
    --health-timeout 10s \
    --health-retries 3 \
    --health-start-period 1500s \
    --health-on-failure kill \
    --security-opt label=disable \
    --entrypoint python3 \
    docker.io/vllm/vllm-openai:v0.32.0 \
    -m vllm.entrypoints.cli.main serve Lorbus/Qwen3.6-27B-int4-AutoRound \
    --served-model-name qwen3.6-27b \
    --max-model-len 262144 \
    --max-num-seqs 4 \
    --disable-uvicorn-access-log \
    --enable-prompt-tokens-details \
    --kv-cache-dtype turboquant_k8v4 \
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
    --host 0.0.0.0 \
    --port 8000
echo "$name starts; podman logs --follow $name shows it, and it will answer at http://$at:$port."
