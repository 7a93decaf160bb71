"""Model files that are sent to other machines and fetched from them: compared, resumed, and checked."""
