"""Benchmarks of groups around majority centers."""
