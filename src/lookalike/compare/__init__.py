"""Two documents side by side: how similar they are, what they share, and which words differ."""
