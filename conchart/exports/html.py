"""The page: one HTML file that works offline. ``charts`` draws it, and loads only when asked: plotly is slow."""

from pathlib import Path
from typing import TYPE_CHECKING

from conchart.options import DrawOptions

if TYPE_CHECKING:
    from conchart.trace import Trace


def write_page(trace: "Trace", path: Path, options: DrawOptions) -> None:
    """Write the page."""
    from conchart.charts.page import write_html

    write_html(trace, path, options)
