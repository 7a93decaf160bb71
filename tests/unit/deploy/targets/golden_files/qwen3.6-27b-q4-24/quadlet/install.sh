#!/usr/bin/env bash
# Installs sndr-qwen3-6-27b-q4-24 as a service of the person who runs this.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

folder=$HOME/.local/share/sndr/deploy/sndr-qwen3-6-27b-q4-24
mkdir -p "$folder" "$HOME/.local/share/sndr/models"
install -D -m 644 "$here/sndr-qwen3-6-27b-q4-24.container" "$HOME/.config/containers/systemd/sndr-qwen3-6-27b-q4-24.container"
install -D -m 644 "$here/sndr-qwen3-6-27b-q4-24-watchdog.service" "$HOME/.config/systemd/user/sndr-qwen3-6-27b-q4-24-watchdog.service"
install -D -m 644 "$here/sndr-qwen3-6-27b-q4-24-watchdog.timer" "$HOME/.config/systemd/user/sndr-qwen3-6-27b-q4-24-watchdog.timer"
install -m 755 "$here/watchdog.py" "$folder/watchdog.py"
install -m 755 "$here/download.sh" "$folder/download.sh"
# The values that a person filled in stay.
[ -f "$folder/secrets.env" ] || install -m 600 "$here/secrets.env" "$folder/secrets.env"
systemctl --user daemon-reload
if [ "${1:-}" != --no-start ]; then
    systemctl --user start sndr-qwen3-6-27b-q4-24.service
    systemctl --user enable --now sndr-qwen3-6-27b-q4-24-watchdog.timer
fi
echo "sndr-qwen3-6-27b-q4-24 is installed; journalctl --user --unit sndr-qwen3-6-27b-q4-24 --follow shows it."
echo "loginctl enable-linger keeps it running while you are not logged in."
