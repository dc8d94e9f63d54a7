"""One function for each thing a user wants to publish; picks the best method."""
