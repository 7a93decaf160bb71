"""The first run in words: for the window's dialog and for `sndr setup` alike."""
