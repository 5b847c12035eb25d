"""The page: one HTML file that works offline. ``charts`` draws it, and loads only when asked: plotly is slow."""

from contextlib import suppress
from pathlib import Path
from threading import Thread

from conchart.options import DrawOptions
from conchart.tables import Tables


def prepare_page() -> None:
    """Begin, beside what is done meanwhile, with what every page has: it takes as long as reading a small capture."""

    def work() -> None:
        with suppress(
            Exception
        ):  # a process that ends lets nothing be imported; the page that is written tells the rest
            from conchart.charts.page import prepare_page

            prepare_page()

    Thread(target=work).start()


def write_page(tables: Tables, path: Path, options: DrawOptions) -> None:
    """Write the page."""
    from conchart.charts.page import write_html

    write_html(tables, path, options)
