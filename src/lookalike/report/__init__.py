"""Pages that need nothing but themselves: how text gets into them, how they look and are drawn."""
