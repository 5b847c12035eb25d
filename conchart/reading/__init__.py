"""What to read: capture filters, time windows, proxies that somebody names, captures that still grow.

In: options of the command line or of ``conchart.read``. Out: what the native core takes.
"""
