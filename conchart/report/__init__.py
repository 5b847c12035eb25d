"""What page and terminal both say, in the same words. In: the tables of a trace. Out: texts and numbers, safe to show.

Nothing is worked out here: what is said of a server, a stall, a capture stands in a table.
"""
