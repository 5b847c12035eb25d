"""The page: one HTML file that works offline. ``charts`` draws it, and loads only when asked: plotly is slow."""

from pathlib import Path

from conchart.options import DrawOptions
from conchart.tables import Tables


def write_page(tables: Tables, path: Path, options: DrawOptions) -> None:
    """Write the page."""
    from conchart.charts.page import write_html

    write_html(tables, path, options)
