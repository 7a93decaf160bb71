#!/usr/bin/env bash
# Demo model on vLLM's CPU build: sndr-demo in vllm 0.32.0 with 2 patches.
# Written by sndr from a preset or a plan; change those and write it again rather than this file.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
name=sndr-demo-vllm
address=${SNDR_ADDRESS:-127.0.0.1}
port=${SNDR_PORT:-8000}
# Before a port an address of IPv6 stands in brackets, and alone without them.
address=${address#[} address=${address%]} at=$address
case $address in *:*) at="[$address]" ;; esac
# Where the engine says what became of each patch stays here, over containers.
mkdir -p "$here/ledger"

if [ -n "$(podman ps --all --quiet --filter "name=^sndr-demo-vllm\$")" ]; then
    # It may finish what it answers just now; a removal by force alone would not wait.
    podman stop -t 60 "$name" >/dev/null
    podman rm --force "$name" >/dev/null
fi
podman run --detach --name "$name" \
    --init \
    --restart unless-stopped \
    --stop-timeout 60 \
    --security-opt no-new-privileges \
    --shm-size 8589934592 \
    --publish "$at:$port:8000" \
    --mount type=bind,source="$here/overlay",target=/sndr/overlay,readonly \
    --mount type=bind,source="$here/ledger",target=/sndr/ledger \
    --mount type=bind,source=/srv/sndr/resources/models/sndr-demo,target=/sndr/models/sndr-demo,readonly \
    --mount type=volume,source="$name-cache",target=/sndr/cache \
    --env-file "$here/secrets.env" \
    --env VLLM_NO_USAGE_STATS=1 \
    --env VLLM_DO_NOT_TRACK=1 \
    --env DO_NOT_TRACK=1 \
    --env HF_HUB_OFFLINE=1 \
    --env TRANSFORMERS_OFFLINE=1 \
    --env HF_HUB_DISABLE_TELEMETRY=1 \
    --env VLLM_LOGGING_COLOR=0 \
    --env NO_COLOR=1 \
    --env PYTHONUNBUFFERED=1 \
    --env VLLM_CACHE_ROOT=/sndr/cache/vllm/0123456789abcdef \
    --env VLLM_CPU_KVCACHE_SPACE=1 \
    --env SNDR_OVERLAY=/sndr/overlay \
    --env SNDR_OVERLAY_LEDGER=/sndr/ledger \
    --env SNDR_OVERLAY_SHADOW=/sndr/cache/shadow \
    --env PYTHONPATH=/sndr/overlay \
    --label dev.sndr.deployment=sndr-demo-vllm \
    --label dev.sndr.model=sndr-demo \
    --label 'dev.sndr.engine=vllm 0.32.0' \
    --label dev.sndr.patches=0123456789abcdef \
    --label dev.sndr.patch-ids=json-whitespace-limit,oom-keeps-engine \
    --health-cmd 'python3 -c '"'"'import urllib.request as r; r.urlopen('"'"'"'"'"'"'"'"'http://127.0.0.1:8000/health'"'"'"'"'"'"'"'"', timeout=9)'"'"'' \
    --health-interval 30s \
    --health-timeout 10s \
    --health-retries 3 \
    --health-start-period 601s \
    --health-on-failure kill \
    --security-opt label=disable \
    --entrypoint python3 \
    public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.32.0 \
    -m vllm.entrypoints.cli.main serve /sndr/models/sndr-demo \
    --served-model-name sndr-demo \
    --max-model-len 2048 \
    --max-num-seqs 2 \
    --disable-uvicorn-access-log \
    --enable-prompt-tokens-details \
    --max-num-batched-tokens 2048 \
    --enforce-eager \
    --no-enable-prefix-caching \
    --enable-auto-tool-choice \
    --tool-call-parser qwen3_xml \
    --additional-config '{"sndr_patches": "0123456789abcdef"}' \
    --host 0.0.0.0 \
    --port 8000
echo "$name starts; podman logs --follow $name shows it, and it will answer at http://$at:$port."
