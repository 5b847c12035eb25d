"""``conchart``: one command that needs no name, the others beside it; errors become exit codes here and only here."""

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
import duckdb

import conchart
from conchart.cli.streams import ReaderLeft, standard_streams
from conchart.errors import ConchartError, NoRoomError
from conchart.labels.printable import printable_lines
from conchart.store.memory import no_room

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_INTERRUPTED = 130
_BROKEN_PIPE = 141
_OWN_OPTIONS = ("--help", "-h", "--version")
_MORE = ("-v", "--verbose")
_OPTIONS_OF_OTHERS = {
    **dict.fromkeys(("-o", "--out", "--output"), "write with -w out.html"),
    **dict.fromkeys(("-i", "-r", "--input", "--read"), "captures need no option: conchart in.pcap -w out.html"),
}
"""Options that users of other programs expect, and the equivalent here."""
_EXTRA = re.compile(r"Got unexpected extra argument \((\S+\.\w+)\)")
"""click's message about a surplus argument that is a file."""


COMMANDS = ("completion", "diff", "doctor", "explain", "findings", "live", "query", "whatif")
"""Each is a module of its own, imported when it is asked for: all of them take a fifth of a second."""
_DEFAULT = "summary"


class _SummaryByDefault(click.Group):
    """A group in which ``conchart trace.pcap`` means ``summary``: a command's name counts only when exact and first."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in (*COMMANDS, _DEFAULT):
            return None
        command: click.Command = getattr(import_module(f"conchart.cli.{cmd_name}"), cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[Any]]":
        """Give the commands, and what the default command has in this place: its options, captures."""
        from conchart.cli.completion import beside_captures  # not above: a run has no use for it

        found = super().shell_complete(ctx, incomplete)
        if summary := self.get_command(ctx, _DEFAULT):
            values = {item.value for item in found}
            found += [each for each in summary.shell_complete(ctx, incomplete) if each.value not in values]
            if not incomplete.startswith("-"):
                found = beside_captures(found, incomplete)
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--version" in args and {*args} <= {*_OWN_OPTIONS, *_MORE}:
            args = sorted(args, key=lambda arg: arg not in _MORE)  # eager options are handled in their order
        elif args and args[0] not in (*COMMANDS, _DEFAULT, *_OWN_OPTIONS):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The default command's help is the manual; the others follow."""
        if summary := self.get_command(ctx, _DEFAULT):
            summary.format_help(ctx, formatter)
        self.format_commands(ctx, formatter)


def _show_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:  # noqa: ARG001
    """Print one line, or with ``-v`` what a report of a bug needs."""
    if not wanted or ctx.resilient_parsing:
        return
    if not ctx.params.get("verbose"):
        click.echo(f"conchart {conchart.__version__}")
    else:
        from conchart.cli.facts import build_facts

        for name, value in build_facts():
            click.echo(f"{name:<13} {value}")
    ctx.exit()


@click.group(cls=_SummaryByDefault, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", is_flag=True, is_eager=True, help="With --version: print the facts of the build.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def cli(verbose: bool) -> None:  # noqa: ARG001  (--version reads it)
    """Show where the time went in a packet capture."""


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
            _complain(f"{_hint(error) or error.format_message()}\nTry 'conchart --help'.")
            return error.exit_code
        except (click.Abort, KeyboardInterrupt):
            return _INTERRUPTED
        return result if isinstance(result, int) else 0


def _hint(error: click.ClickException) -> str | None:
    """Name the equivalent of another program's option, if the command has ``-w``."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or all(parameter.name != "outputs" for parameter in context.command.params):
        return None
    if isinstance(error, click.NoSuchOption):
        hint = _OPTIONS_OF_OTHERS.get(error.option_name)
        return f"no option {error.option_name}: {hint}" if hint else None
    extra = _EXTRA.fullmatch(error.format_message())
    return f"one argument too many: to write {extra[1]}, use -w {extra[1]}" if extra else None


def _complain(message: str) -> None:
    click.echo(f"conchart: {printable_lines(message, limit=1000)}", err=True)
