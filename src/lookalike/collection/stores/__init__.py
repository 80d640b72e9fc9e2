"""Where collections are kept: what a database must do, and the two that do it."""
