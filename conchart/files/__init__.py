"""Files on disk: temporary folders, unfinished files, and what is undone when the process has to end.

In: paths. Out: whole files or none, and nothing left behind.
"""
