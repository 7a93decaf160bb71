#!/usr/bin/env bash
# The second half of `make package-check`: the packages in dist/ in clean Debian 12 and 13, where this machine can make them.
#
#   packaging/linux/check_clean.sh [RELEASE…]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
deb=$(find dist -maxdepth 1 -name 'sndr-control-center_*.deb' 2>/dev/null | sort | tail -n 1)
if [ -z "$deb" ]; then
    echo "No .deb in dist/: clean Debians were not looked at."
elif [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "Clean Debians were not looked at: that needs root and debootstrap (apt install debootstrap)."
else
    [ $# -gt 0 ] || set -- bookworm trixie
    for release in "$@"; do
        packaging/linux/check_deb.sh "$deb" "$release"
    done
fi
