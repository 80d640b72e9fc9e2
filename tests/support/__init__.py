"""Oracles, strategies and helpers of the tests."""
