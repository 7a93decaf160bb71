#!/usr/bin/env bash
# The second half of `make package-check`: the packages in dist/ in clean Debian 12 and 13, where this machine can make them.
#
#   packaging/linux/check_clean.sh [RELEASE…]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# The newest: what was made of an earlier version may lie there too.
deb=$(find dist -maxdepth 1 -name 'sndr-control-center_*.deb' -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1 | cut -d' ' -f2-)
if [ -z "$deb" ]; then
    echo "No .deb in dist/: clean Debians were not looked at."
elif [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "Clean Debians were not looked at: that needs root and debootstrap (apt install debootstrap)."
else
    [ $# -gt 0 ] || set -- bookworm trixie
    failed=()
    for release in "$@"; do
        packaging/linux/check_deb.sh "$deb" "$release" || failed+=("$release")
    done
    if [ ${#failed[@]} -gt 0 ]; then
        echo "Not in order: ${failed[*]}; the lines above say at which step." >&2
        exit 1
    fi
fi
