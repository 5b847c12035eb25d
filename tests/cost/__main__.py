"""Command: what captures of every shape cost at their full size: rows, seconds, memory.

python -m tests.cost                 every shape at a thousandth of its size, to see that it runs
python -m tests.cost --full [NAME]   at its size, of the shapes that have NAME in theirs; each in a process of its own
"""

import resource
import subprocess
import sys
from time import process_time

import click

from conchart import Trace
from tests.conftest import analysed
from tests.cost.meter import Costs, Metered
from tests.cost.shapes import SHAPES, fill

_MIB = 1 << 10
"""Of what the system counts memory in."""


def measured(name: str, size: int) -> str:
    """Analyse a capture of a shape; give a line of the table."""
    costs = Costs()
    with Trace(Metered(costs)) as trace:  # type: ignore[arg-type]  # a database but for its class
        trace.create()
        fill(trace, next(shape for shape in SHAPES if shape.name == name), size)
        costs.rows.clear()
        before = process_time()
        analysed(trace)
        seconds = process_time() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _MIB
    return f"{name:<60}{size:>9,}{sum(costs.rows.values()):>14,}{seconds:>8.1f}{memory:>8,}"


@click.command()
@click.argument("name", default="")
@click.option("--full", is_flag=True, help="At their full sizes.")
@click.option("--size", type=int, help="All at this size.")
@click.option("--alone", is_flag=True, hidden=True)
def main(name: str, size: int | None, *, full: bool, alone: bool) -> None:
    """Print rows touched, seconds of processor time and MiB at most, for every shape."""
    if alone:
        click.echo(measured(name, size or 0))
        return
    click.echo(f"{'shape':<60}{'size':>9}{'rows':>14}{'s':>8}{'MiB':>8}")
    for shape in SHAPES:
        if name in shape.name:
            own = size or (shape.full if full else max(shape.full // 1_000, 10))
            # What one shape takes is not given back to the system for the next.
            command = [sys.executable, "-m", "tests.cost", shape.name, "--alone", "--size", str(own)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
