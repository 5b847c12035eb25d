"""``conchart completion SHELL``: the script with which a shell completes commands, options, files and interfaces.

click has the mechanism: the script asks ``conchart`` itself, with ``_CONCHART_COMPLETE`` in the environment.
"""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

VARIABLE = "_CONCHART_COMPLETE"
"""Is set when a shell asks for completions, in place of a run: click derives the name from that of the program."""

SHELLS = ("bash", "zsh", "fish")


def beside_captures(commands: list[CompletionItem[Any]], incomplete: str) -> list[CompletionItem[Any]]:
    """Give commands and the files that the first word may name as well.

    The scripts of click take either the words that they get or the shell's own completion of files: where commands
    fit, the files are given as words.
    """
    if not commands:
        return [CompletionItem(incomplete, type="file")]
    names = Path().iterdir() if "/" not in incomplete else ()
    fitting = sorted(path for path in names if path.name.startswith(incomplete) and not path.name.startswith("."))
    return commands + [CompletionItem(f"{path.name}/" if path.is_dir() else path.name) for path in fitting]


@click.command(options_metavar="")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete the commands and options of conchart, files and interfaces.

    \b
    Examples:
      conchart completion bash > ~/.local/share/bash-completion/completions/conchart
      conchart completion zsh > ~/.zfunc/_conchart     # with fpath+=~/.zfunc before compinit
      conchart completion fish > ~/.config/fish/completions/conchart.fish
    """  # noqa: D301  (click's mark for lines it must not wrap)
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click knows no completion for {shell}")
    root = ctx.find_root()
    # Not source() of bash: it starts bash to learn its version, and the script is often written for another machine.
    script = kind(root.command, {}, "conchart", VARIABLE)
    click.echo(script.source_template % script.source_vars())
