"""Which conchart this is. In: nothing. Out: its version (docs/versions.md says what its numbers promise)."""

VERSION = "0.2.0"
"""Also read by setup.cfg; ``conchart/native/Cargo.toml`` repeats it, and a test compares them."""


def version() -> str:
    """Give the version of this code."""
    return VERSION
