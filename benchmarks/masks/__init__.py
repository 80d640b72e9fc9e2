"""Queries of which only some bits count: what masks cost, and what they find."""
