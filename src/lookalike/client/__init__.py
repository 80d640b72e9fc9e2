"""A client for collections behind a service, with the methods of a local collection."""

from lookalike.client.remote import RemoteCollection, connect

__all__ = ["RemoteCollection", "connect"]
