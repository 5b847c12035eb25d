"""Pictures for slides: SVG and PNG. matplotlib draws them, and is imported only when asked for.

In: a report. Out: the file.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from conchart.errors import UsageError
from conchart.outputs.options import DrawOptions

if TYPE_CHECKING:
    from conchart.report.report import Report


def check_drawing(output: Path) -> None:
    """Refuse to draw without matplotlib.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import matplotlib  # noqa: F401  (only whether it is there)
    except ImportError:
        raise UsageError(
            f"cannot write {output}: pictures are drawn by matplotlib, which is not installed\n"
            "  pip install 'conchart[pictures]'"
        ) from None


def write_svg(report: "Report", path: Path, options: DrawOptions) -> None:
    """Draw the lanes as SVG."""
    from conchart.outputs.pictures.picture import draw_svg

    draw_svg(report, path, options)


def write_png(report: "Report", path: Path, options: DrawOptions) -> None:
    """Draw the lanes as PNG."""
    from conchart.outputs.pictures.picture import draw_png

    draw_png(report, path, options)
