"""Options that several commands have in common, and sizes as people write them."""
