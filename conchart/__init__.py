"""Where did the time go? conchart reads packet captures and charges every nanosecond of every connection to one cause.

>>> import conchart
>>> with conchart.read("slow.pcap") as trace:  # doctest: +SKIP
...     trace.write("slow.html")
...     trace.sql("SELECT kind, sum(end_at - start_at) FROM phases GROUP BY kind").show()
"""

from conchart.errors import CaptureError, ConchartError, OutputError, UsageError
from conchart.options import DrawOptions
from conchart.trace import Trace, read

__all__ = ["CaptureError", "ConchartError", "DrawOptions", "OutputError", "Trace", "UsageError", "read"]
__version__ = "0.1.0"
