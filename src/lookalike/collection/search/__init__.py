"""What is near, in the database or in memory; and the documents that have it."""
