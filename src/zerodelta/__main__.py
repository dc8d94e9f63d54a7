"""`python -m zerodelta` is the `zerodelta` command."""

from zerodelta.cli import app

if __name__ == "__main__":
    app()
