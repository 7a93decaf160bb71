"""The one question that every example asks: README, help, snippets and the first question of a start."""

EXAMPLE_QUESTION = "What is a list comprehension?"
"""The bundled demo model answers it right; `tests/integration/host/test_demo_model.py` asks it."""
