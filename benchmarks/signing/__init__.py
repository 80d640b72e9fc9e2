"""Text to signatures, beside the other ways to sign."""
