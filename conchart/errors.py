"""The errors that conchart raises on purpose, each with the exit code of the command line."""


class ConchartError(Exception):
    """Base of everything conchart raises on purpose; its text is complete and meant for people."""

    exit_code = 1


class UsageError(ConchartError):
    """What was asked for makes no sense: a filter that does not compile, a time nobody can read, an unknown suffix."""

    exit_code = 2


class CaptureError(ConchartError):
    """Nothing could be read from a capture. A damaged one that gave something is a note in ``captures`` instead."""

    exit_code = 3


class NoRoomError(ConchartError):
    """The tables of a capture fit neither into the memory that they may take nor onto the disk beside it."""

    exit_code = 4


class OutputError(ConchartError):
    """An output file could not be written. What was there before is untouched."""

    exit_code = 4


class MissingToolError(ConchartError):
    """What was asked for needs a package that is not installed; its text says which, and how to install it."""

    exit_code = 2
