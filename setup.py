"""What a build does beside what setup.cfg says: Plotly's script is packed, the YAML of rules is read."""

import runpy
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PACKER = Path("conchart/outputs/page/plotly_script.py")
READER = Path("conchart/analysis/findings/front_matter.py")


class BuildAhead(build_py):
    """Builds the Python modules, and what they would else make at each start, beside the module that reads it."""

    def run(self) -> None:
        """Build; an editable checkout gets the files in its own tree, where git ignores them."""
        super().run()
        packer = runpy.run_path(str(PACKER))
        try:
            script = packer["basic_script"]()
        except packer["Unavailable"] as problem:
            print(f"Pages will carry all of Plotly (1.4 MB more): {problem}", file=sys.stderr)  # noqa: T201
            script = packer["whole_script"]()
        folder = Path() if self.editable_mode else Path(self.build_lib)
        (folder / PACKER.parent / packer["PACKED"].name).write_text(packer["packed"](script), encoding="ascii")
        reader = runpy.run_path(str(READER))
        read_before = folder / READER.parent / "rules" / reader["READ_BEFORE"].name
        read_before.write_text(reader["read_ahead"](), encoding="ascii")


setup(cmdclass={"build_py": BuildAhead})
