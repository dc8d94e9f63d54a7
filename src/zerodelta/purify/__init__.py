"""Channels that remove delta, and the plans that choose among them."""
