"""The files of a bug report: what is collected, what is taken out of it, and the zip that holds it."""
