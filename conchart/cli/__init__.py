"""The command line. In: arguments. Out: text, files and exit codes; what is computed and drawn lives elsewhere."""

from conchart.cli.main import main

__all__ = ["main"]
