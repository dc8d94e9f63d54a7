"""Write certificates as files for Coq, which checks them against the theorems of proofs/."""
