"""Maintenance of collections: verify, repair, snapshot, import, export, duplicates."""
