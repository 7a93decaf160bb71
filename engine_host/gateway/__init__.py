"""The public endpoint: OpenAI over loopback TCP, routed to the engines."""
