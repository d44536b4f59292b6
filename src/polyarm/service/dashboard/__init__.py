"""Pages that show what the service does, rendered on the server."""
