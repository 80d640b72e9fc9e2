"""Recordings: decoding, fingerprints of 32-bit words, their index, and the medium "recordings"."""
