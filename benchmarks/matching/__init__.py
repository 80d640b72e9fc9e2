"""Blocks and flips, online and in batches."""
