"""Who stays: clusters of pairs, and of each cluster the ones that the others go for."""
