"""Models on Hugging Face: asked about and downloaded, only when a person asked for it."""
