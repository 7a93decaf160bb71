"""The operations of the control API: each defined once, in `table`."""
