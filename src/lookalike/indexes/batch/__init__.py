"""A batch of signatures against a collection that stays on disk."""
