"""`sndr top` with a real host: once, as JSON, and in a terminal until Ctrl+C."""
