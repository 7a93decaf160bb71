"""A settings file that is wrong: the line at fault, what of it holds, and a text without what is wrong."""
