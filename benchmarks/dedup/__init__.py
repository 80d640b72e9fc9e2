"""Whole jobs beside the same job done with other tools."""
