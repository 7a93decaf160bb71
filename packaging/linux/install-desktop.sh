#!/usr/bin/env bash
# Puts this clone, or the unpacked program that it lies in, into the user's application menu and `sndr` where shells
# find it; `--remove` takes both out again.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
if [ -x sndr-gui ]; then
    bin=$PWD template=share/sndr.desktop picture=share/sndr.svg shells=share
else
    cd ../..
    bin=$PWD/.venv/bin template=packaging/linux/sndr.desktop picture=resources/icons/sndr.svg
fi
share=${XDG_DATA_HOME:-$HOME/.local/share}
entry=$share/applications/sndr.desktop
icon=$share/icons/hicolor/scalable/apps/sndr.svg

programs=$HOME/.local/bin
# Where bash, fish and man look for a user's own; zsh looks nowhere by itself.
known=(bash-completion/completions/sndr fish/vendor_completions.d/sndr.fish man/man1/sndr.1)

# Which program opens sndr:// links is looked up in what this makes.
update_entries() {
    if command -v update-desktop-database >/dev/null && [ -d "$share/applications" ]; then
        update-desktop-database -q "$share/applications"
    fi
}

# In Exec a path with spaces stands in quotes; ", ` and $ are escaped twice, and % is doubled.
# shellcheck disable=SC2089  # The quotes are for the desktop, not for the shell.
PROGRAM="\"$(printf '%s' "$bin/sndr-gui" | sed -e 's/["`$]/\\\\&/g' -e 's/%/%%/g')\""

if [ "${1:-}" = --remove ]; then
    # The entry of another copy of the program is that one's.
    if [ -e "$entry" ] && grep -qF "Exec=$PROGRAM" "$entry"; then
        rm -f "$entry" "$icon" "${known[@]/#/$share/}"
        update_entries
        echo "Removed from the application menu."
    fi
    for name in sndr sndr-gui; do
        if [ "$(readlink "$programs/$name")" = "$bin/$name" ]; then
            rm "$programs/$name"
            echo "Removed $programs/$name."
        fi
    done
    exit 0
fi

mkdir -p "$(dirname "$entry")" "$(dirname "$icon")"
# shellcheck disable=SC2090
export PROGRAM
awk '$0 == "Exec=@PROGRAM@ %u" { print "Exec=" ENVIRON["PROGRAM"] " %u"; next } { print }' \
    "$template" >"$entry"
cp "$picture" "$icon"
update_entries
echo "SNDR Control Center is in the application menu, and opens sndr:// links ($entry)."

if [ -z "${shells:-}" ]; then
    shells=$(mktemp -d)
    trap 'rm -r "$shells"' EXIT
    "$bin/python" packaging/linux/shell_files.py "$shells"
fi
for file in "${known[@]}"; do
    install -D -m 644 "$shells/$file" "$share/$file"
done
echo "bash and fish complete sndr, and man sndr tells of it."

mkdir -p "$programs"
for name in sndr sndr-gui; do
    link=$programs/$name target=$bin/$name
    # A link to another one of this program is replaced; anything else is somebody's own.
    if [ -e "$link" ] && [[ $(readlink "$link") != */@(.venv/bin|sndr-control-center*)/$name ]]; then
        echo "$link is something else and was left alone; the program is $target." >&2
    else
        ln -sfn "$target" "$link"
        echo "$link is this program."
    fi
done
case :$PATH: in
*:"$programs":*) ;;
*) echo "$programs is not in PATH yet; a new login adds it on most systems, or: export PATH=\"$programs:\$PATH\"" ;;
esac
