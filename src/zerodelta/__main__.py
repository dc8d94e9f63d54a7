"""Run the `zerodelta` command by `python -m zerodelta`."""

from zerodelta.cli import app

if __name__ == "__main__":
    app()
