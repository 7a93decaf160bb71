"""The findings of checks: one table of sentences, and the values that are filled into them."""
