"""Links of a crawl, inverted: which pages link to each page, and with which words."""

from lookalike.incoming.job import incoming_links
from lookalike.incoming.records import IncomingSettings
from lookalike.incoming.result import IncomingLinks

__all__ = ["IncomingLinks", "IncomingSettings", "incoming_links"]
