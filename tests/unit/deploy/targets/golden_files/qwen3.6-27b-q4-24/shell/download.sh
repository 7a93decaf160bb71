#!/usr/bin/env bash
# Fetches the model of sndr-qwen3-6-27b-q4-24; goes on where it was cut off.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
if [ -f "$here/secrets.env" ]; then
    set -a
    # shellcheck source=/dev/null
    . "$here/secrets.env"
    set +a
fi
models=${SNDR_MODELS:-$HOME/.local/share/sndr/models}

fetch() { # address, file, SHA-256 or nothing, bytes or nothing
    local file=$2 token=/dev/null size="" address=$1
    case $file in /*) ;; *) file="$models/$file" ;; esac
    case $address in https://huggingface.co/*) address="${HF_ENDPOINT:-https://huggingface.co}/${address#https://huggingface.co/}" ;; esac
    if [ -f "$file" ]; then
        echo "$file is there."
        return
    fi
    mkdir -p "$(dirname "$file")"
    # Through a file of its own: a command line can be read by everybody on the machine.
    if [ -n "${HF_TOKEN:-}" ]; then
        token=$(mktemp)
        printf 'header = "Authorization: Bearer %s"\n' "$HF_TOKEN" >"$token"
    fi
    curl --fail --location --continue-at - --config "$token" --output "$file.part" "$address" || {
        [ "$token" = /dev/null ] || rm -f "$token"
        echo "$address could not be fetched; what is there is kept, and the next call goes on from it." >&2
        exit 1
    }
    [ "$token" = /dev/null ] || rm -f "$token"
    size=$(wc -c <"$file.part")
    if [ -n "$4" ] && [ "$size" -ne "$4" ]; then
        rm -f "$file.part"
        echo "$file has $size bytes in the place of $4 and was removed." >&2
        exit 1
    fi
    if [ -n "$3" ] && ! echo "$3  $file.part" | sha256sum --check --status; then
        rm -f "$file.part"
        echo "$file is not what it should be (SHA-256) and was removed." >&2
        exit 1
    fi
    [ -n "$3" ] || echo "$file has $size bytes; its SHA-256 is not known, so nothing else was checked." >&2
    mv "$file.part" "$file"
}

fetch https://huggingface.co/unsloth/Qwen3.6-27B-MTP-GGUF/resolve/5cb35eb3dcbf52dbce5f87dbc64df6aaffadcace/Qwen3.6-27B-Q4_K_M.gguf Qwen3.6-27B-Q4_K_M.gguf a7cbd3ecc0e3f9b333edee61ae66bc87ed713c5d49587a8355814722ed329e0f 17106773120
