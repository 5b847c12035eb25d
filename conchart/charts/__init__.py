"""The offline page: quality of the capture, where the time went, swimlanes, table of connections."""
