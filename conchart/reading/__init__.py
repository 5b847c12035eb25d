"""From captures and options to filled tables.

In: a ``Source`` (which captures), ``ReadOptions`` (which packets, how much of them, by whom) and ``Knowledge`` (what
somebody knows besides). Out: the tables that hold what packets say. ``strategy`` chooses who fills them: one process,
several (``parts``), one for each place (``places``), or one that reads what is still growing. Each is a function
``read`` with the same arguments, and each talks to the native core by ``core`` alone.
"""
