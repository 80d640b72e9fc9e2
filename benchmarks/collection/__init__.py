"""Live collections on both databases."""
