"""Question, plan, ticket, run: the one way from public inputs to a release."""
