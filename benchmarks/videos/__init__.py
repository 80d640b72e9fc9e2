"""Hashes of videos beside vPDQ: what is found after what happens to films, and how fast."""
