"""Start at login: the window by an entry of the desktop, the host alone by a unit of systemd."""
