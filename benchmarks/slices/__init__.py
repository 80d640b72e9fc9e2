"""Slice lists beside faiss's binary indexes."""
