#!/usr/bin/env bash
# `packaging/gpu/llamacpp.sh SOURCE_TAR [arguments of llamacpp.py]`: compiles llama.cpp for this machine's GPU without a
# network, from an archive of its patched source, with the options of `sndr engine build`; then runs llamacpp.py.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source=${1:?usage: packaging/gpu/llamacpp.sh SOURCE_TAR [arguments of llamacpp.py]}
shift
work=${LLAMA_BUILD:-/tmp/llama-build}
python=.venv/bin/python
[ -x $python ] || python=.gpu-venv/bin/python
if [ ! -x "$work/build/bin/llama-server" ]; then
    mkdir -p "$work"
    tar -C "$work" --strip-components=1 -xf "$source"
    mapfile -t options < <("$python" -c '
from engine_host.engines.llamacpp.build.toolchain import CMAKE_ARGUMENTS
print("\n".join(CMAKE_ARGUMENTS))')
    sm=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sort -u | tr -d '. ' | paste -sd ';')
    began=$SECONDS
    cmake -S "$work" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_CUDA=ON \
        "-DCMAKE_CUDA_ARCHITECTURES=${sm//;/-real;}-real" "${options[@]}" >"$work/configure.log" 2>&1 ||
        { tail -n 30 "$work/configure.log"; exit 1; }
    cmake --build "$work/build" --target llama-server llama-bench >"$work/build.log" 2>&1 ||
        { tail -n 40 "$work/build.log"; exit 1; }
    echo "compiled for SM $sm in $((SECONDS - began)) s"
fi
[ "${1:-}" != --build-only ] || exit 0
exec "$python" packaging/gpu/llamacpp.py --folder "$work/build/bin" "$@"
