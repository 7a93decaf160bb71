#!/usr/bin/env bash
# Demo model on llama.cpp: sndr-demo in llama.cpp b12464.
# Written by sndr from a preset or a plan; change those and write it again rather than this file.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
name=sndr-demo-llamacpp
address=${SNDR_ADDRESS:-127.0.0.1}
port=${SNDR_PORT:-8000}
# Before a port an address of IPv6 stands in brackets, and alone without them.
address=${address#[} address=${address%]} at=$address
case $address in *:*) at="[$address]" ;; esac

if [ -n "$(docker ps --all --quiet --filter "name=^sndr-demo-llamacpp\$")" ]; then
    # It may finish what it answers just now; a removal by force alone would not wait.
    docker stop -t 60 "$name" >/dev/null
    docker rm --force "$name" >/dev/null
fi
docker run --detach --name "$name" \
    --init \
    --restart unless-stopped \
    --stop-timeout 60 \
    --security-opt no-new-privileges \
    --shm-size 1073741824 \
    --publish "$at:$port:8000" \
    --mount type=bind,source=/srv/sndr/resources/models/sndr-demo/sndr-demo-q8_0.gguf,target=/sndr/models/sndr-demo-q8_0.gguf,readonly \
    --mount type=volume,source="$name-cache",target=/sndr/cache \
    --env-file "$here/secrets.env" \
    --label dev.sndr.deployment=sndr-demo-llamacpp \
    --label dev.sndr.model=sndr-demo \
    --label 'dev.sndr.engine=llama.cpp b12464' \
    --health-cmd 'curl --fail --silent --max-time 9 http://127.0.0.1:8000/health' \
    --health-interval 30s \
    --health-timeout 10s \
    --health-retries 3 \
    --health-start-period 601s \
    --entrypoint /app/llama-server \
    ghcr.io/ggml-org/llama.cpp:server-b12464 \
    --model /sndr/models/sndr-demo-q8_0.gguf \
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
    --host 0.0.0.0 \
    --port 8000
echo "$name starts; docker logs --follow $name shows it, and it will answer at http://$at:$port."
