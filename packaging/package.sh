#!/usr/bin/env bash
# `make package`: the wheel, into dist/ or the folder that is named. The same tree gives the same bytes.
#
#   packaging/package.sh [FOLDER]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly folder=${1:-dist}
# The set-up writes it from the GGUF; a wheel without it would be another one.
if [ ! -f resources/models/sndr-demo/model.safetensors ]; then
    echo "The demo model's checkpoint is missing. Run packaging/setup.sh run first." >&2
    exit 1
fi
mkdir -p "$folder"
rm -f "$folder"/sndr_control_center-*.whl
# Not through an environment of its own: what builds is locked with the rest, and no network is needed.
.venv/bin/python -m hatchling build -t wheel -d "$folder" >/dev/null
wheel=$(ls "$folder"/sndr_control_center-*.whl)
echo "$wheel: $(($(stat -c %s "$wheel") / 1000000)) MB, sha256 $(sha256sum "$wheel" | cut -d' ' -f1)"
