"""Keeping collections well: checked, copied, imported and exported."""
