"""Theme, formats, rows and resources that every page uses."""
