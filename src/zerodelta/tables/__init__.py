"""Statistics by group: plans, parts, and the table that is released (theory P1, P2, G2, U)."""
