"""One page each; widgets only, driven by the view-model of the same name."""
