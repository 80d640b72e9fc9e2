"""The service under load, beside an empty route of the same server."""
