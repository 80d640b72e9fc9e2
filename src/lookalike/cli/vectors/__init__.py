"""`lookalike index` and `lookalike search` where what is indexed are vectors."""
