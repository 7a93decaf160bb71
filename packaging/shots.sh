#!/usr/bin/env bash
# `make shots`: pictures of every page in both themes, into docs/images/.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# Folders of its own: the pictures show a first start, not this machine's models and settings.
SNDR_HOME=$home SNDR_CACHE=${SNDR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sndr} .venv/bin/python packaging/shots.py "$@"
