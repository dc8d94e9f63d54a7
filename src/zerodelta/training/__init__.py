"""Descent on small models: losses, networks, gradients as exact sums (theory C1)."""
