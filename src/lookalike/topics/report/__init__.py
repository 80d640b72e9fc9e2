"""A page that shows clusters of documents, and needs nothing but itself."""
