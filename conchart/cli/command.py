"""``conchart``: one command that needs no name, the others beside it; errors become exit codes here and only here."""

from typing import Any

import click
import duckdb

import conchart
from conchart.cli.diff import diff
from conchart.cli.findings import findings
from conchart.cli.query import query
from conchart.cli.streams import ReaderLeft, standard_streams
from conchart.cli.summary import summary
from conchart.cli.whatif import whatif
from conchart.errors import ConchartError, NoRoomError
from conchart.memory import no_room
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
cli.add_command(diff)
cli.add_command(findings)
cli.add_command(query)
cli.add_command(whatif)


def run(args: list[str] | None) -> int:
    """Run the command line; gives the exit code."""
    with standard_streams() as out:
        try:
            result: Any = cli.main(args, prog_name="conchart", standalone_mode=False)
            out.flush()
        except ReaderLeft:
            return _BROKEN_PIPE
        except duckdb.OutOfMemoryException as error:
            _complain(str(no_room(error)))
            return NoRoomError.exit_code
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
