"""Arguments and options that name files: what a command reads, and what it writes.

In: the values that click parsed. Out: a refusal before anything is read, where an output would replace an input or a
file that conchart did not write; completions. A new option is covered by its type.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from conchart.files.replacing import Named, refuse_foreign, refuse_inputs
from conchart.outputs import matching_suffix

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_Command = TypeVar("_Command", bound=Callable[..., Any])


class Input(click.ParamType[str]):
    """The name of a file that the command reads."""

    name = "file"

    def __init__(
        self, files: Callable[[str], Iterable[str]] = lambda value: (value,), *, completed: str = "file"
    ) -> None:
        """Make a type.

        Args:
            files: Gives the files that a value names, where it is not the name itself.
            completed: What a shell completes: ``file``, ``dir`` or ``plain``.
        """
        self.files = files
        self.completed = completed

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":  # noqa: ARG002
        """Leave the names to the shell."""
        from click.shell_completion import CompletionItem  # not above: a run has no use for it

        return [CompletionItem(incomplete, type=self.completed)] if self.completed != "plain" else []


class Output(click.ParamType[str]):
    """The name of a file that the command writes."""

    name = "file"

    def __init__(self, suffix: str | None = None) -> None:
        """Make a type.

        Args:
            suffix: The format, where neither the file's own suffix nor ``--format`` tells it.
        """
        self.suffix = suffix

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":  # noqa: ARG002
        """Leave the names to the shell."""
        from click.shell_completion import CompletionItem  # not above: a run has no use for it

        return [CompletionItem(incomplete, type="file")]


def write_option(help: str) -> Callable[[_Command], _Command]:  # noqa: A002  (as click calls it)
    """Give the option that names the files that a command writes: ``outputs``."""
    return click.option("-w", "--write", "outputs", multiple=True, type=Output(), metavar="OUT", help=help)


FORCE = click.option("--force", is_flag=True, help="Also replace a file that conchart did not write. Never an input.")


class FileCommand(click.Command):
    """A command whose outputs never replace its inputs, nor, without ``--force``, the files of others."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  (as click has it)
        """Refuse what must not be replaced, then run the command.

        Raises:
            UsageError: An output is an input, or a file that conchart did not write.
        """
        inputs = [
            Named(option=_label(parameter), path=file)
            for parameter, value in _values(ctx)
            if isinstance(parameter.type, Input)
            for file in parameter.type.files(value)
        ]
        outputs = [(one, one.type, value) for one, value in _values(ctx) if isinstance(one.type, Output)]
        refuse_inputs((Named(option=_label(parameter), path=value) for parameter, _, value in outputs), inputs)
        refuse_inputs([Named(option="standard output", path="-")], inputs)
        for parameter, kind, value in outputs:
            suffix = kind.suffix or matching_suffix(value, ctx.params.get("form"))
            if suffix and not ctx.params.get("force"):
                refuse_foreign(value, suffix, option=_label(parameter))
        return super().invoke(ctx)


def _values(ctx: click.Context) -> Iterator[tuple[click.Parameter, str]]:
    """Give each value of each parameter: options may be repeated."""
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        yield from ((parameter, one) for one in (value if isinstance(value, tuple) else (value,)) if one is not None)


def _label(parameter: click.Parameter) -> str:
    """Give an option as it is usually typed, an argument as the help has it."""
    return parameter.opts[0] if isinstance(parameter, click.Option) else (parameter.metavar or "").rstrip(".")
