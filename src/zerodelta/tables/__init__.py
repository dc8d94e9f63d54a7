"""Release statistics by group: plans, parts, and the released table (theory P1, P2, G2, U)."""
