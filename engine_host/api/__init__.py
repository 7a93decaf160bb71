"""The control API: one router a resource, over the local socket."""
