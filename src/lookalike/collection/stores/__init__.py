"""Databases that store collections: the interface, SQLite and PostgreSQL."""
