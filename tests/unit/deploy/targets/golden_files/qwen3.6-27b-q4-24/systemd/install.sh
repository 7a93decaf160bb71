#!/usr/bin/env bash
# Installs sndr-qwen3-6-27b-q4-24 as a service of the person who runs this.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

units=$HOME/.config/systemd/user
folder=$HOME/.local/share/sndr/deploy/sndr-qwen3-6-27b-q4-24
mkdir -p "$units" "$folder" "$HOME/.local/share/sndr/models"
install -m 644 "$here/sndr-qwen3-6-27b-q4-24.service" "$units/sndr-qwen3-6-27b-q4-24.service"
install -m 644 "$here/sndr-qwen3-6-27b-q4-24-watchdog.service" "$units/sndr-qwen3-6-27b-q4-24-watchdog.service"
install -m 644 "$here/sndr-qwen3-6-27b-q4-24-watchdog.timer" "$units/sndr-qwen3-6-27b-q4-24-watchdog.timer"
install -m 755 "$here/watchdog.py" "$folder/watchdog.py"
install -m 755 "$here/download.sh" "$folder/download.sh"
# The values that a person filled in stay.
[ -f "$folder/secrets.env" ] || install -m 600 "$here/secrets.env" "$folder/secrets.env"
systemctl --user daemon-reload
if [ "${1:-}" != --no-start ]; then
    systemctl --user enable --now sndr-qwen3-6-27b-q4-24.service
    systemctl --user enable --now sndr-qwen3-6-27b-q4-24-watchdog.timer
fi
echo "sndr-qwen3-6-27b-q4-24 is installed; journalctl --user --unit sndr-qwen3-6-27b-q4-24 --follow shows it."
echo "loginctl enable-linger keeps it running while you are not logged in."
