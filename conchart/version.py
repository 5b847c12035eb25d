"""Which conchart wrote a file. In: what is installed. Out: its version."""

from importlib import metadata


def version() -> str:
    """Give the version that is installed."""
    try:
        return metadata.version("conchart")
    except metadata.PackageNotFoundError:  # run from a source tree that was never installed
        return "(not installed)"
