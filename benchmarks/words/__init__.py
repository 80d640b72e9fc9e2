"""Search by a few words: what it finds, and how long it takes."""
