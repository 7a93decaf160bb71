"""OpenAI's forms: request bodies, the list of models, usage, log probabilities."""
