"""Many hidden noisy questions, one small pure release."""
