"""`sndr on-demand`, and what `sndr run` and `sndr launch` share with it."""
