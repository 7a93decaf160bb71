"""A real probe of the endpoint in one client's own dialect: models, stream, tool call, cancel."""
