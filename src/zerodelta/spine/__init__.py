"""Go from public inputs to a release, the one way there is: question, plan, ticket, run."""
