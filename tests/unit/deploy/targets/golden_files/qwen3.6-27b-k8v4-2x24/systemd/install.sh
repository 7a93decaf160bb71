#!/usr/bin/env bash
# Installs sndr-qwen3-6-27b-k8v4-2x24 as a service of the person who runs this.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

folder=$HOME/.local/share/sndr/deploy/sndr-qwen3-6-27b-k8v4-2x24
mkdir -p "$folder" "$HOME/.cache/huggingface"
install -D -m 644 "$here/sndr-qwen3-6-27b-k8v4-2x24.service" "$HOME/.config/systemd/user/sndr-qwen3-6-27b-k8v4-2x24.service"
install -D -m 644 "$here/sndr-qwen3-6-27b-k8v4-2x24-watchdog.service" "$HOME/.config/systemd/user/sndr-qwen3-6-27b-k8v4-2x24-watchdog.service"
install -D -m 644 "$here/sndr-qwen3-6-27b-k8v4-2x24-watchdog.timer" "$HOME/.config/systemd/user/sndr-qwen3-6-27b-k8v4-2x24-watchdog.timer"
install -m 755 "$here/watchdog.py" "$folder/watchdog.py"
rm -rf "$folder/overlay" && cp -R "$here/overlay" "$folder/overlay"
mkdir -p "$folder/ledger"
# The values that a person filled in stay.
[ -f "$folder/secrets.env" ] || install -m 600 "$here/secrets.env" "$folder/secrets.env"
systemctl --user daemon-reload
if [ "${1:-}" != --no-start ]; then
    systemctl --user enable --now sndr-qwen3-6-27b-k8v4-2x24.service
    systemctl --user enable --now sndr-qwen3-6-27b-k8v4-2x24-watchdog.timer
fi
echo "sndr-qwen3-6-27b-k8v4-2x24 is installed; journalctl --user --unit sndr-qwen3-6-27b-k8v4-2x24 --follow shows it."
echo "loginctl enable-linger keeps it running while you are not logged in."
