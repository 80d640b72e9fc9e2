"""HTML pages of what was removed, and of what benchmarks share with a corpus."""
