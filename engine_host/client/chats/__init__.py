"""Conversations of the window's Chat, kept in files of this machine."""
