"""How tests run code: in pages and processes, with faults, on machines that do not change."""
