"""One file per format that rows are read from and written to, and what these share."""
