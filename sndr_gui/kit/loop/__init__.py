"""Qt's event loop: what each event goes through, and what is done between two; coroutines in it."""
