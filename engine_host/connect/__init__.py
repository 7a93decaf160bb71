"""Editors and agents of this machine, set to the endpoint: found, told what to set, written, undone, probed.

It runs where the window or the command runs, beside the files that it changes, and not in the host.
"""
