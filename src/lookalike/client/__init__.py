"""A collection of a service, used as one that is here."""

from lookalike.client.connecting import connect
from lookalike.client.remote import RemoteCollection

__all__ = ["RemoteCollection", "connect"]
