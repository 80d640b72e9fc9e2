"""Services that tests start, and jobs of theirs that wait."""
