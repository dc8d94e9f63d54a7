"""What k-means is made of: a grid, rounds, and a forecast."""
