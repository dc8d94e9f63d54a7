"""Privacy claims, their composition, and the certificate that proves a release."""
