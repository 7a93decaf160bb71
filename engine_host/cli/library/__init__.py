"""`sndr models`: the models of this machine and of Hugging Face."""
