"""Trying to break our own claims: exact output distributions on small inputs."""
