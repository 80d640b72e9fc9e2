"""The smallest possible entry of a registry."""

BELL = ("ding", "dong")
