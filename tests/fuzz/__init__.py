"""Drives the fuzz targets of the native core: ``python -m tests.fuzz``."""
