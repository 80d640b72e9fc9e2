"""Search: near signatures, in the database or in memory, and their documents."""
