"""The errors that conchart raises on purpose, each with the exit code of the command line."""


class ConchartError(Exception):
    """Base of everything conchart raises on purpose; its text is complete and meant for people."""

    exit_code = 1


class UsageError(ConchartError):
    """The request is not valid: a filter that does not compile, a time that cannot be parsed, an unknown suffix."""

    exit_code = 2


class CaptureError(ConchartError):
    """Nothing could be read from a capture. A damaged capture with readable packets is no error, but a note."""

    exit_code = 3


class TaskError(CaptureError):
    """A process or machine that reads a part of a capture was lost, or cannot do it."""


class NoRoomError(ConchartError):
    """The tables of a capture fit neither into the allowed memory nor onto the disk."""

    exit_code = 4


class OutputError(ConchartError):
    """An output file could not be written. What was there before is untouched."""

    exit_code = 4


class MissingToolError(ConchartError):
    """The request needs a package that is not installed; the text says which, and how to install it."""

    exit_code = 2
