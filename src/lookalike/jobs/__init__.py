"""What every job over a corpus needs: a work folder, arrays on disk, limits, progress, reading."""
