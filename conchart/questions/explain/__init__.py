"""One connection explained: what each packet is for, who is silent when, and what other programs would print of it.

In: the tables of a trace. Out: :class:`Ladder`. Page and terminal show the same ladders. Captures in which not all
packets are kept have none, but for the connection that ``read(explain=…)`` named.
"""

from conchart.questions.explain.clocks import Clock, clocks
from conchart.questions.explain.connection import Connection, connections, count_complete
from conchart.questions.explain.ladder import Ladder, every_rung, ladder
from conchart.questions.explain.pauses import Pause
from conchart.questions.explain.sequence import LadderRow

__all__ = [
    "Clock",
    "Connection",
    "Ladder",
    "LadderRow",
    "Pause",
    "clocks",
    "connections",
    "count_complete",
    "every_rung",
    "ladder",
]
