"""``python -m tests.whatif [FOLDER]``: predicted, measured, error, for each pair of captures."""

from tests.whatif.comparison import main

main()
