"""The page: one HTML file that works offline. What draws it is imported only when a page is asked for.

In: the tables of a trace. Out: the file.
"""

from contextlib import suppress
from pathlib import Path
from threading import Thread

from conchart.outputs.options import DrawOptions
from conchart.store.tables import Tables


def prepare_page() -> None:
    """Begin, beside what is done meanwhile, with what every page has: it takes as long as reading a small capture."""

    def work() -> None:
        with suppress(
            Exception
        ):  # a process that ends lets nothing be imported; the page that is written tells the rest
            from conchart.outputs.page.page import prepare_page

            prepare_page()

    Thread(target=work).start()


def write_page(tables: Tables, path: Path, options: DrawOptions) -> None:
    """Write the page."""
    from conchart.outputs.page.page import write_html

    write_html(tables, path, options)
