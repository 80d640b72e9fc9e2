"""Use a collection that a service holds like a local one."""

from lookalike.client.remote import RemoteCollection, connect

__all__ = ["RemoteCollection", "connect"]
