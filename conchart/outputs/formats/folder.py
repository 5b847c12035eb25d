"""Every table as a Parquet file in one folder, for engines that read Parquet and for ``Trace.load``.

In: the tables of a trace. Out: ``<table>/<number>.parquet`` for each table, and ``manifest.json``, which says who wrote
them.
"""

import json
from pathlib import Path

from conchart.store.saved import MANIFEST
from conchart.store.schema import SCHEMA_VERSION, TABLES
from conchart.store.sql import literal
from conchart.store.tables import Tables
from conchart.version import version

_FILE_BYTES = "256MB"


def write_folder(tables: Tables, path: Path) -> None:
    """Write the folder, which is new."""
    path.mkdir()
    for table in TABLES:
        folder = literal(str(path / table.name))
        query = f"FROM {table.name} ORDER BY {table.key}"
        tables.execute(
            f"COPY ({query}) TO {folder} (FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES '{_FILE_BYTES}')"
        )
    about = {"conchart": SCHEMA_VERSION, "version": version(), "tables": [table.name for table in TABLES]}
    (path / MANIFEST).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
