"""Step 9, report: one page that shows what was found, and needs nothing but itself."""
