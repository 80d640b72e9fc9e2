"""Which documents are near-duplicates: pairs are proposed and compared."""
