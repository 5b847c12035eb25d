"""Questions about a trace, one package each: ``compare``, ``predict``, ``explain``, ``dissect``.

In: the tables of one trace, or of two. Out: plain values, which ``outputs`` draws and writes.
"""
