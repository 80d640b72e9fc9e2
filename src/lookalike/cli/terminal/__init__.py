"""What commands write to, and how they end when they are interrupted."""
