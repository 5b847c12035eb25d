"""The tables of a trace: their schema, the DuckDB database that holds them, saved traces, memory limits.

In: Arrow batches of the native core, or a saved database. Out: tables, answered in SQL.
"""
