"""Live MinHash: rows that come and go under keys."""
