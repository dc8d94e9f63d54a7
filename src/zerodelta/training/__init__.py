"""Train small models by descent: losses, networks, gradients as exact sums (theory C1)."""
