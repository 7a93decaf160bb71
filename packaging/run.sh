#!/usr/bin/env bash
# `make run`: the window where there is a display, else the demo on the command line.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -n "${WAYLAND_DISPLAY:-}${DISPLAY:-}" ]; then
    command=(.venv/bin/sndr-gui)
else
    echo "No display: running on the command line. Ctrl+C ends it." >&2
    command=(.venv/bin/sndr run --demo)
fi
if [ -t 0 ]; then
    # At a terminal the program gets Ctrl+C alone: make would call an orderly end an error.
    set -m
    "${command[@]}"
else
    exec "${command[@]}"
fi
