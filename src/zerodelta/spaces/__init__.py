"""What may be published: finite sets, boxes, balls, multisets, and their lattices."""
