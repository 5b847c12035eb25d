"""``conchart``: one command that needs no name, the others beside it; errors become exit codes here and only here."""

import os
import sys
from typing import Any

import click

import conchart
from conchart.cli.query import query
from conchart.cli.summary import summary
from conchart.errors import ConchartError
from conchart.printable import printable

_INTERRUPTED = 130
_BROKEN_PIPE = 141
_OWN_OPTIONS = ("--help", "-h", "--version")


class _SummaryByDefault(click.Group):
    """A group in which ``conchart trace.pcap`` means ``summary``: a command's name counts only when exact and first."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in _OWN_OPTIONS:
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  (as click has it)
        """Run the command; a reader of our output that has gone is no error to complain about."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python would complain when it flushes at exit, and click would exit with 1.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(_BROKEN_PIPE)
        return result

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The default command's help is the manual; the others follow."""
        summary.format_help(ctx, formatter)
        self.format_commands(ctx, formatter)


_DEFAULT = "summary"


@click.group(cls=_SummaryByDefault, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(conchart.__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Say where the time went in a packet capture."""


summary.hidden = True
cli.add_command(summary, _DEFAULT)
cli.add_command(query)


def main(args: list[str] | None = None) -> None:
    """Run the command line and leave the process: 0 done, 2 usage, 3 unreadable capture, 4 cannot write."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.exit(_run(args))


def _run(args: list[str] | None) -> int:
    try:
        result: Any = cli.main(args, prog_name="conchart", standalone_mode=False)
    except ConchartError as error:
        _complain(str(error))
        return error.exit_code
    except click.ClickException as error:
        _complain(f"{error.format_message()}\nTry 'conchart --help'.")
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    return result if isinstance(result, int) else 0


def _complain(message: str) -> None:
    first, *rest = message.split("\n")
    click.echo(f"conchart: {printable(first, limit=1000)}", err=True)
    for line in rest:
        click.echo(printable(line, limit=1000), err=True)
