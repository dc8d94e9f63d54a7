"""The paper's algorithms by number, corrected, for reproduction and comparison."""
