"""Formats for other tools, one per module: CSV, Parquet, JSON, HAR, OTLP, Perfetto, pcapng, DuckDB.

In: the tables of a trace. Out: one file.
"""
