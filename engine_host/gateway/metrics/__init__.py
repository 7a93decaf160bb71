"""`/metrics` in Prometheus' format: the endpoint's own figures, and each engine's beside them."""
