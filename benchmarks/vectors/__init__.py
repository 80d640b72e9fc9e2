"""Vectors: recall and time beside faiss, on real word vectors and on phrases made of them."""
