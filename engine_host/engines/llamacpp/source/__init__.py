"""The source of the llama.cpp build: which package, which patches, and how they are applied."""
