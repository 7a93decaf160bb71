"""What checks say: one table of sentences, and the findings that are made of them."""
