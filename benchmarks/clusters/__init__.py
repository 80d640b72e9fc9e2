"""Benchmarks of groups around majority centres."""
