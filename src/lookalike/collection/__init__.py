"""Collections: documents in SQLite or PostgreSQL with exact search."""

from lookalike.collection.answers import Answer, Answers, Match, Pair, Work
from lookalike.collection.care.snapshots import restore_collection
from lookalike.collection.care.verify import Report
from lookalike.collection.collection import Collection
from lookalike.collection.documents import Document
from lookalike.collection.opening import drop_collection, list_collections, open_collection
from lookalike.collection.writing import Written
from lookalike.errors import ItemError

__all__ = [
    "Answer",
    "Answers",
    "Collection",
    "Document",
    "ItemError",
    "Match",
    "Pair",
    "Report",
    "Work",
    "Written",
    "drop_collection",
    "list_collections",
    "open_collection",
    "restore_collection",
]
