"""Live measurements of the machine and the engines, with a short history."""
