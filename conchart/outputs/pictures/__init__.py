"""Pictures for slides: SVG and PNG. matplotlib draws them, and is imported only when asked for.

In: the tables of a trace. Out: the file.
"""

from pathlib import Path

from conchart.analysis.sights import once
from conchart.errors import UsageError
from conchart.outputs.options import DrawOptions
from conchart.store.tables import Tables


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


@once
def write_svg(tables: Tables, path: Path, options: DrawOptions) -> None:
    """Draw the lanes as SVG."""
    from conchart.outputs.pictures.picture import draw_svg

    draw_svg(tables, path, options)


@once
def write_png(tables: Tables, path: Path, options: DrawOptions) -> None:
    """Draw the lanes as PNG."""
    from conchart.outputs.pictures.picture import draw_png

    draw_png(tables, path, options)
