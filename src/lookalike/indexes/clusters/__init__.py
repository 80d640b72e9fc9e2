"""Groups of signatures around majority centers."""
