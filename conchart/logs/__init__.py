"""Access logs beside the capture: lines as rows, each beside the exchange that it is about.

In: files that servers wrote, and their format strings; the tables of a capture. Out: ``logs``, ``log_lines``,
``log_times``, ``log_differences``. Only traces with a log pay for any of it.
"""
