"""Check the texts that users read with vale (README, docs, rules, the help of each command), and names in the code.

    python -m tests.prose

In: Markdown, the help of the commands, and comments of code. Out: nothing, or each sentence that breaks a rule, and
exit code 1. The rules are in `styles/conchart`. Without vale, the check is skipped and says so.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conftest import ROOT
from tests.prose import MISSING, alerts, helps, installed
from tests.prose.names import vague

TEXTS = ("README.md", "docs", "conchart")
CODE = ("conchart", "examples", "tests")


def main() -> int:
    """Print what is wrong; gives the exit code."""
    names = [*vague(*(ROOT / folder for folder in CODE))]
    for name in names:
        print(name)  # noqa: T201  (it is a command)
    if installed() is None:
        print(f"skipped: {MISSING}")  # noqa: T201
        return 1 if names else 0
    with TemporaryDirectory() as folder:
        written = Path(folder) / "help.md"
        written.write_text(helps(), encoding="utf-8")
        found = [*alerts(*(ROOT / text for text in TEXTS)), *alerts(written)]
    for alert in found:
        print(alert)  # noqa: T201  (it is a command)
    return 1 if found or names else 0


if __name__ == "__main__":
    sys.exit(main())
