"""Print which findings fire where: ``python -m tests.findings [FILE OR FOLDER…]``, in our captures if none is named."""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import conchart
from conchart import CaptureError
from tests.conftest import CASES, capture_of, keys_of, name_of
from tests.findings.matrix import Row, line, rows_of, table

_SUFFIXES = (".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".cap.gz")


def main() -> None:
    """Read the captures, print a line for each and a table of the findings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="FILE OR FOLDER")
    paths = [file for path in parser.parse_args().paths for file in _captures(path)]
    named = {str(path): path for path in paths} or {name_of(case): capture_of(case) for case in CASES}
    rows: dict[str, tuple[Row, ...]] = {}
    for name, path in named.items():
        # Foreign folders have damaged ones.
        with suppress(CaptureError), conchart.read(path, keylog=keys_of(path.parent)) as trace:
            rows[name] = rows_of(trace)
            print(f"{name}: {line(rows[name])}", flush=True)  # noqa: T201
    print("", *table(rows), sep="\n")  # noqa: T201


def _captures(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    yield from sorted(file for file in path.rglob("*") if file.name.endswith(_SUFFIXES))


if __name__ == "__main__":
    main()
