"""A prediction in text. In: a :class:`~conchart.questions.predict.Prediction`. Out: lines for a rich console."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conchart.outputs.terminal.words import wrapped
from conchart.questions.predict import Prediction
from conchart.questions.predict.sentences import assumptions, comparison, headline, question

_NUMBERS = ("measured", "predicted", "difference")


def print_prediction(prediction: Prediction, console: Console) -> None:
    """Print what it comes to, the numbers side by side, and what was assumed."""

    def show(text: str, style: str = "", indent: str = "") -> None:
        for line in wrapped(text, console.width, indent=indent):
            console.print(Text(line, style), soft_wrap=True)

    show(question(prediction.change), "bold")
    show(headline(prediction))
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("", overflow="fold")
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    for row in comparison(prediction):
        table.add_row(*map(Text, row))
    console.print(table)
    console.print()
    for text in assumptions(prediction):
        show(f"- {text}", indent="  ")
