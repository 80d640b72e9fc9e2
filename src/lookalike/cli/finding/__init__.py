"""For commands that find: where queries come from, and how what was found is shown."""
