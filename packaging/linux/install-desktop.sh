#!/usr/bin/env bash
# Puts this clone into the user's application menu; `--remove` takes it out again.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
share=${XDG_DATA_HOME:-$HOME/.local/share}
entry=$share/applications/sndr.desktop
icon=$share/icons/hicolor/scalable/apps/sndr.svg

if [ "${1:-}" = --remove ]; then
    rm -f "$entry" "$icon"
    echo "Removed from the application menu."
    exit 0
fi

mkdir -p "$(dirname "$entry")" "$(dirname "$icon")"
# In Exec a path with spaces stands in quotes; ", ` and $ are escaped twice, and % is doubled.
# shellcheck disable=SC2089  # The quotes are for the desktop, not for the shell.
PROGRAM="\"$(printf '%s' "$PWD/.venv/bin/sndr-gui" | sed -e 's/["`$]/\\\\&/g' -e 's/%/%%/g')\""
# shellcheck disable=SC2090
export PROGRAM
awk '$0 == "Exec=@PROGRAM@" { print "Exec=" ENVIRON["PROGRAM"]; next } { print }' \
    packaging/linux/sndr.desktop >"$entry"
cp resources/icons/sndr.svg "$icon"
if command -v update-desktop-database >/dev/null; then
    update-desktop-database -q "$(dirname "$entry")"
fi
echo "SNDR Control Center is in the application menu ($entry)."
