#!/usr/bin/env bash
# Installs sndr-demo-llamacpp as a service of the person who runs this.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

folder=$HOME/.local/share/sndr/deploy/sndr-demo-llamacpp
mkdir -p "$folder" "$HOME/.cache/huggingface"
install -D -m 644 "$here/sndr-demo-llamacpp.service" "$HOME/.config/systemd/user/sndr-demo-llamacpp.service"
install -D -m 644 "$here/sndr-demo-llamacpp-watchdog.service" "$HOME/.config/systemd/user/sndr-demo-llamacpp-watchdog.service"
install -D -m 644 "$here/sndr-demo-llamacpp-watchdog.timer" "$HOME/.config/systemd/user/sndr-demo-llamacpp-watchdog.timer"
install -m 755 "$here/watchdog.py" "$folder/watchdog.py"
# The values that a person filled in stay.
[ -f "$folder/secrets.env" ] || install -m 600 "$here/secrets.env" "$folder/secrets.env"
systemctl --user daemon-reload
if [ "${1:-}" != --no-start ]; then
    systemctl --user enable --now sndr-demo-llamacpp.service
    systemctl --user enable --now sndr-demo-llamacpp-watchdog.timer
fi
echo "sndr-demo-llamacpp is installed; journalctl --user --unit sndr-demo-llamacpp --follow shows it."
echo "loginctl enable-linger keeps it running while you are not logged in."
