"""Image hashes beside those of imagehash and PDQ: what they recognise again, and how quick."""
