#!/usr/bin/env bash
# Installs sndr-qwen3-embedding-0-6b as a service of the person who runs this.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

units=$HOME/.config/containers/systemd
folder=$HOME/.local/share/sndr/deploy/sndr-qwen3-embedding-0-6b
mkdir -p "$units" "$folder" "$HOME/.cache/huggingface"
install -m 644 "$here/sndr-qwen3-embedding-0-6b.container" "$units/sndr-qwen3-embedding-0-6b.container"
install -m 755 "$here/watchdog.py" "$folder/watchdog.py"
rm -rf "$folder/overlay" && cp -R "$here/overlay" "$folder/overlay"
mkdir -p "$folder/ledger"
# The values that a person filled in stay.
[ -f "$folder/secrets.env" ] || install -m 600 "$here/secrets.env" "$folder/secrets.env"
install -D -m 644 "$here/sndr-qwen3-embedding-0-6b-watchdog.service" "$HOME/.config/systemd/user/sndr-qwen3-embedding-0-6b-watchdog.service"
install -D -m 644 "$here/sndr-qwen3-embedding-0-6b-watchdog.timer" "$HOME/.config/systemd/user/sndr-qwen3-embedding-0-6b-watchdog.timer"
systemctl --user daemon-reload
if [ "${1:-}" != --no-start ]; then
    systemctl --user start sndr-qwen3-embedding-0-6b.service
    systemctl --user enable --now sndr-qwen3-embedding-0-6b-watchdog.timer
fi
echo "sndr-qwen3-embedding-0-6b is installed; journalctl --user --unit sndr-qwen3-embedding-0-6b --follow shows it."
echo "loginctl enable-linger keeps it running while you are not logged in."
