"""Arrays in files that can be trusted: checksummed, whole or not at all."""
