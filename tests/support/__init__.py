"""What tests share: oracles, cases, services, and ways to run code."""
