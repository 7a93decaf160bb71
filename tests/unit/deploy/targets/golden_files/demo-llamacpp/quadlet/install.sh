#!/usr/bin/env bash
# Installs sndr-demo-llamacpp as a service of the person who runs this.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

units=$HOME/.config/containers/systemd
folder=$HOME/.local/share/sndr/deploy/sndr-demo-llamacpp
mkdir -p "$units" "$folder" "$HOME/.cache/huggingface"
install -m 644 "$here/sndr-demo-llamacpp.container" "$units/sndr-demo-llamacpp.container"
install -m 755 "$here/watchdog.py" "$folder/watchdog.py"
# The values that a person filled in stay.
[ -f "$folder/secrets.env" ] || install -m 600 "$here/secrets.env" "$folder/secrets.env"
install -D -m 644 "$here/sndr-demo-llamacpp-watchdog.service" "$HOME/.config/systemd/user/sndr-demo-llamacpp-watchdog.service"
install -D -m 644 "$here/sndr-demo-llamacpp-watchdog.timer" "$HOME/.config/systemd/user/sndr-demo-llamacpp-watchdog.timer"
systemctl --user daemon-reload
if [ "${1:-}" != --no-start ]; then
    systemctl --user start sndr-demo-llamacpp.service
    systemctl --user enable --now sndr-demo-llamacpp-watchdog.timer
fi
echo "sndr-demo-llamacpp is installed; journalctl --user --unit sndr-demo-llamacpp --follow shows it."
echo "loginctl enable-linger keeps it running while you are not logged in."
