#!/usr/bin/env bash
# `make gpu-check VLLM=PYTHON`: makes an environment for the host where there is none, then runs check.py;
# over_ssh.py or endpoint.py where the first argument is `over_ssh` or `endpoint`.
#
# VLLM is the Python of an environment with vLLM, or its folder. On a machine with .venv (make setup) that is used; else
# one is made in .gpu-venv from the wheels in .whl/ (packaging/gpu/bundle.sh), without a network.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
vllm=${1:?usage: packaging/gpu/check.sh VLLM_PYTHON [arguments of check.py]}
shift
case $vllm in */bin/python*) vllm=${vllm%/bin/python*} ;; esac
[ -x "$vllm/bin/python" ] || { echo "There is no $vllm/bin/python: VLLM names an environment with vLLM." >&2; exit 1; }

make_environment() {
    local base=${GPU_CHECK_PYTHON:-python3} site
    ls .whl/*.whl >/dev/null 2>&1 ||
        { echo "There is neither .venv (make setup) nor .whl/ (packaging/gpu/bundle.sh)." >&2; exit 1; }
    "$base" -m venv --clear --without-pip .gpu-venv
    site=$(.gpu-venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$base" -m pip install -q --disable-pip-version-check --no-index --find-links .whl --no-deps --no-compile \
        --no-cache-dir --require-hashes --target "$site" -r .whl/packages.lock
    # This tree, and behind our own packages what the machine's Python has (NumPy).
    { echo "$PWD"; "$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; } >"$site/zz_machine.pth"
    # pip puts programs into bin/ of the target; uv is looked for beside the Python.
    [ ! -x "$site/bin/uv" ] || cp "$site/bin/uv" .gpu-venv/bin/
}

# The host's packages are its own, and none of them may reach vLLM's processes.
unset PYTHONPATH
python=.venv/bin/python
if [ ! -x $python ]; then
    python=.gpu-venv/bin/python
    "$python" -c 'import engine_host.cli, uvicorn, numpy' 2>/dev/null || make_environment
fi
model=resources/models/sndr-demo
[ -f $model/model.safetensors ] ||
    $python packaging/demo_model/gguf_to_safetensors.py $model/sndr-demo-q8_0.gguf $model
# torch's own libraries, where vLLM's environment takes torch from somewhere else.
if [ -z "${LD_LIBRARY_PATH:-}" ]; then
    libraries=$("$vllm/bin/python" - <<'END'
import glob, sys
print(":".join(found for path in sys.path if path for found in sorted(glob.glob(f"{path}/nvidia/*/lib"))))
END
)
    [ -z "$libraries" ] || export LD_LIBRARY_PATH=$libraries
fi
# Multicast over NVLink can put a host's GPUs out of service for a day.
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} TORCH_SYMM_MEM_DISABLE_MULTICAST=${TORCH_SYMM_MEM_DISABLE_MULTICAST:-1}
script=check
case ${1:-} in over_ssh | endpoint) script=$1; shift ;; esac
exec "$python" "packaging/gpu/$script.py" --installation "$vllm" "$@"
