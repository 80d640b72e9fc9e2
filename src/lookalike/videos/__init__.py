"""Videos: decoding, hashes of frames, and the medium "videos"."""
