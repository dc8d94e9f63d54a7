"""Saved releases, read back: `zd.load`. `privacy/release_file.py` has the format."""
