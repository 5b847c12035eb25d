"""Manual pages (man(7)) of the commands, made of what click knows of them.

    python -m conchart.cli.manual FOLDER

In: the commands. Out: ``conchart.1``, and ``conchart-query.1`` … beside it. The repository keeps them in ``docs/man``,
because a wheel is built where conchart cannot run yet; a test compares them with the commands.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from conchart.cli.command import COMMANDS, cli
from conchart.version import VERSION

_HEADING = re.compile(r"^(Examples?|Exit codes?):$")
_MOST_CHOICES = 8
_NOT_WRAPPED = "\b"
"""click's mark before a paragraph whose lines are not wrapped."""


def pages() -> dict[str, str]:
    """Give each page by the name of its file."""
    context = click.Context(cli, info_name="conchart")
    summary, *others = (cli.get_command(context, name) for name in ("summary", *COMMANDS))
    texts = (
        {"conchart.1": "".join(_page(summary, "conchart", [command for command in others if command]))}
        if summary
        else {}
    )
    for name, command in zip(COMMANDS, others, strict=True):
        if command:
            texts[f"conchart-{name}.1"] = "".join(_page(command, f"conchart {name}", []))
    return texts


def _page(command: click.Command, name: str, others: list[click.Command]) -> Iterator[str]:
    first, *rest = (command.help or "").split("\n\n")
    title = name.replace(" ", "-")
    yield f'.TH {title.upper()} 1 "" "conchart {VERSION}" "conchart"\n.ad l\n.nh\n'
    yield f".SH NAME\n{_text(title)} \\- {_text(_sentence(first))}\n"
    yield f".SH SYNOPSIS\n.B {_text(name)}\n{_text(_usage(command))}\n"
    if others:
        yield ".br\n.B conchart\n.I COMMAND\n[OPTIONS] ...\n"
    yield f".SH DESCRIPTION\n{_text(_joined(first))}\n"
    later = []
    for paragraph in rest:
        if paragraph.lstrip().startswith(_NOT_WRAPPED):
            later.append(paragraph.lstrip().removeprefix(_NOT_WRAPPED).lstrip("\n"))
        else:
            yield f".PP\n{_text(_joined(paragraph))}\n"
    yield ".SH OPTIONS\n"
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])
    for option in command.get_params(context):
        if isinstance(option, click.Option) and (record := option.get_help_record(context)):
            yield f".TP\n.B {_text(_declared(option, record[0]))}\n{_text(_joined(record[1]))}\n"
    if others:
        yield ".SH COMMANDS\nThe name of a command counts only as the first word.\n"
        for other in others:
            yield f".TP\n.BR conchart-{_text(other.name or '')} (1)\n{_text(_sentence(other.help or ''))}\n"
        yield ".PP\n.B conchart --version\nshows the version, with\n.B -v\nalso the facts of the build.\n"
    for paragraph in later:
        heading, *lines = paragraph.splitlines()
        match = _HEADING.match(heading.strip())
        yield f".SH {match[1].upper() if match else _text(heading)}\n.nf\n"
        yield "".join(f"{_text(line.strip())}\n" for line in lines) + ".fi\n"
    see = ["conchart"] if not others else [f"conchart-{other.name}" for other in others]
    yield ".SH SEE ALSO\n" + ",\n".join(f".BR {_text(page)} (1)" for page in see).replace(",\n", " ,\n") + "\n"


def _declared(option: click.Option, shown: str) -> str:
    """Give an option as its help shows it, but for long lists of choices: those are in its documentation."""
    if isinstance(option.type, click.Choice) and len(option.type.choices) > _MOST_CHOICES:
        return f"{', '.join(option.opts)} {max(option.opts, key=len).lstrip('-').upper()}"
    return shown


def _usage(command: click.Command) -> str:
    context = click.Context(command, info_name="", help_option_names=["-h", "--help"])
    return " ".join(command.collect_usage_pieces(context))


def _sentence(text: str) -> str:
    """Give the first sentence, without its full stop, as ``apropos`` shows it."""
    first = re.split(r"(?<=[.:]) ", _joined(text), maxsplit=1)[0].rstrip(".:")
    return first[:1].lower() + first[1:]


def _joined(text: str) -> str:
    return " ".join(text.split())


def _text(text: str) -> str:
    """Give text that troff prints as it stands: ``-`` is a hyphen there, ``.`` and ``'`` begin a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


def write(folder: Path) -> None:
    """Write the pages; others in the folder go."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.1"):
        stale.unlink()
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
