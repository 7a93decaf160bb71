"""Other machines over the system's ssh: connections, what they forward, what is known of each machine."""
