"""Models that a request loads: their entries, their loads, what they make room with, and when they end."""
