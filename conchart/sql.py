"""SQL text. In: values for the few statements of DuckDB's that take no parameters. Out: literals."""


def literal(text: str) -> str:
    """Write text as an SQL literal: ``COPY`` and ``ATTACH`` take no parameters."""
    return "'" + text.replace("'", "''") + "'"
