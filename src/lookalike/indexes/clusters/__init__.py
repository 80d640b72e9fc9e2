"""Groups of signatures around majority centres."""
