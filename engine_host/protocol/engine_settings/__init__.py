"""The table of engine settings, and what a row of it holds."""
