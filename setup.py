"""What a build does beside what setup.cfg says: Plotly's script is packed for the pages."""

import runpy
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PACKER = Path("conchart/outputs/page/plotly_script.py")


class BuildWithPlotly(build_py):
    """Builds the Python modules, and the packed script beside the one that reads it."""

    def run(self) -> None:
        """Build; an editable checkout gets the script in its own tree, where git ignores it."""
        super().run()
        packer = runpy.run_path(str(PACKER))
        try:
            script = packer["basic_script"]()
        except packer["Unavailable"] as problem:
            print(f"Pages will carry all of Plotly (1.4 MB more): {problem}", file=sys.stderr)  # noqa: T201
            script = packer["whole_script"]()
        folder = Path() if self.editable_mode else Path(self.build_lib)
        (folder / PACKER.parent / packer["PACKED"].name).write_text(packer["packed"](script), encoding="ascii")


setup(cmdclass={"build_py": BuildWithPlotly})
