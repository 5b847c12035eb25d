"""Where did the time go? conchart reads packet captures and charges every nanosecond of every connection to one cause.

>>> import conchart
>>> with conchart.read("slow.pcap") as trace:  # doctest: +SKIP
...     trace.write("slow.html")
...     trace.sql("SELECT kind, sum(end_at - start_at) FROM phases GROUP BY kind").show()
"""

from conchart.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conchart.errors import CaptureError, ConchartError, MissingToolError, NoRoomError, OutputError, UsageError
    from conchart.outputs.options import DrawOptions
    from conchart.trace import Trace, read

__all__ = [
    "CaptureError",
    "ConchartError",
    "DrawOptions",
    "MissingToolError",
    "NoRoomError",
    "OutputError",
    "Trace",
    "UsageError",
    "read",
]
__version__ = VERSION

_HOMES = {"DrawOptions": "conchart.outputs.options", "Trace": "conchart.trace", "read": "conchart.trace"}


def __getattr__(name: str) -> object:
    """Import what is asked for (PEP 562): all of it takes a third of a second, which signals must not wait for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOMES.get(name, "conchart.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
