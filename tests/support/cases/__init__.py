"""Inputs that tests share: calls, corpora, pages, signatures and indexes."""
