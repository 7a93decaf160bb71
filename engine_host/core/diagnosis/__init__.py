"""Why engines were slow and why they died, judged from what was measured: pure, and files of this machine."""
