"""State privacy claims, compose them, and prove a release by a certificate."""
