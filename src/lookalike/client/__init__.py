"""A client for collections and indexes behind a service, with the methods of local ones."""

from lookalike.client.index import RemoteIndex
from lookalike.client.remote import RemoteCollection, connect

__all__ = ["RemoteCollection", "RemoteIndex", "connect"]
