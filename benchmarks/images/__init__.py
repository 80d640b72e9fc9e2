"""Image hashes beside those of imagehash and PDQ: what they recognize again, and how quick."""
