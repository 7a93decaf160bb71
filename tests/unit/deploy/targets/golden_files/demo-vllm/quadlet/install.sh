#!/usr/bin/env bash
# Installs sndr-demo-vllm as a service of the person who runs this.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

folder=$HOME/.local/share/sndr/deploy/sndr-demo-vllm
mkdir -p "$folder" "$HOME/.cache/huggingface"
install -D -m 644 "$here/sndr-demo-vllm.container" "$HOME/.config/containers/systemd/sndr-demo-vllm.container"
install -D -m 644 "$here/sndr-demo-vllm-watchdog.service" "$HOME/.config/systemd/user/sndr-demo-vllm-watchdog.service"
install -D -m 644 "$here/sndr-demo-vllm-watchdog.timer" "$HOME/.config/systemd/user/sndr-demo-vllm-watchdog.timer"
install -m 755 "$here/watchdog.py" "$folder/watchdog.py"
rm -rf "$folder/overlay" && cp -R "$here/overlay" "$folder/overlay"
mkdir -p "$folder/ledger"
# The values that a person filled in stay.
[ -f "$folder/secrets.env" ] || install -m 600 "$here/secrets.env" "$folder/secrets.env"
systemctl --user daemon-reload
if [ "${1:-}" != --no-start ]; then
    systemctl --user start sndr-demo-vllm.service
    systemctl --user enable --now sndr-demo-vllm-watchdog.timer
fi
echo "sndr-demo-vllm is installed; journalctl --user --unit sndr-demo-vllm --follow shows it."
echo "loginctl enable-linger keeps it running while you are not logged in."
