"""Rows de-duplicated by the cosine of their vectors: read, find pairs, cluster, choose, write."""
