"""The bench lab: workloads, a load generator over HTTP, figures with their gates, and what was kept."""
