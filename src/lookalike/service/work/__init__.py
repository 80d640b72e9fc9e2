"""What was asked for is done here, in threads and processes: whoever asks does not block others."""
