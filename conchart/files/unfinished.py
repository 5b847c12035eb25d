"""Clean-up of unfinished files: when a block ends, or when the process has to stop at once.

In: functions that undo something and may be called twice. Out: a block around what they are for; ``undo_all`` for
the code that ends the process, which is the command line's handler of signals. Imports nothing, because it is loaded
before everything else.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_pending: "list[Undone]" = []


class Undone:
    """A block at whose end, however it ends, a function is called.

    The function is known before the block does anything: between a thing and the promise to undo it there is no
    instant at which a signal could come.
    """

    def __init__(self, undo: "Callable[[], object]") -> None:
        """Promise to call ``undo``."""
        self.undo = undo

    def __enter__(self) -> None:
        _pending.append(self)

    def __exit__(self, *_: object) -> None:
        try:
            self.undo()
        finally:
            _pending.remove(self)


def undo_all() -> None:
    """Undo what every open block would, the last one first. Errors are ignored: nobody is left to hear of them."""
    for block in reversed(_pending.copy()):
        try:  # noqa: SIM105  (contextlib may be half imported)
            block.undo()
        except Exception:  # noqa: PERF203
            pass
