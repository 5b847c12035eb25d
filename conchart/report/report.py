"""All that is said of a trace: the answer, where the time went, what was captured.

In: tables. Out: :class:`Report`, whose parts are plain values. Each part is worked out once, when somebody first asks
for it. Texts of the capture are made safe to print, but not for HTML.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from conchart.analysis.sights import first_sights
from conchart.report import connections as of_one
from conchart.report import details as each
from conchart.report import findings as found
from conchart.report import kinds, logs, partition, path_changes, queries, remarks, servers, stalls, unjudged
from conchart.report import lanes as drawn
from conchart.report import overview as counts
from conchart.report import places as of_places
from conchart.report import verdict as answer
from conchart.report.axis import TimeAxis, captured_ns, time_axis
from conchart.report.connections import Connection, Phase
from conchart.report.delays import Delays, delays
from conchart.report.details import Details
from conchart.report.findings import Finding
from conchart.report.kinds import CaptureFile, Tallies
from conchart.report.lanes import Lane, Stretch
from conchart.report.logs import Compared
from conchart.report.overview import Overview
from conchart.report.partition import Unexplained
from conchart.report.places import Clock, Lost, Spent
from conchart.report.queries import Query, Store
from conchart.report.remarks import Remark
from conchart.report.request_paths import RequestPath, journeys
from conchart.report.servers import Server, ServerGroup, Totals
from conchart.report.splits import Splits, splits
from conchart.report.stalls import StallCost, Stalled
from conchart.report.swimlanes import Swimlanes, swimlanes
from conchart.report.unjudged import Unjudged
from conchart.report.verdict import Verdict
from conchart.store.tables import Tables


class Report:
    """What there is to say of one trace."""

    names: bool
    """With names found in the capture."""

    def __init__(self, tables: Tables, *, names: bool = True) -> None:
        """Take the tables of a trace, in which each connection stands once (:func:`report_of`)."""
        self._tables = tables
        self.names = names

    @classmethod
    def of(cls, parts: Mapping[str, object], *, names: bool = True) -> "Report":
        """Make a report of given parts, without a trace: to show what could also be read from one."""
        report = cls.__new__(cls)
        report.__dict__.update(parts, names=names)
        return report

    def anonymous(self) -> "Report":
        """Give the same without names found in the capture."""
        return Report(self._tables, names=False)

    # --- the answer

    @cached_property
    def verdict(self) -> Verdict:
        """What is shown first."""
        return answer.verdict(
            waited_ns=self.totals.waited_ns,
            findings=self.findings,
            waits=self.unexplained,
            in_vain=self.in_vain,
            served=answer.served(self._tables),
            lacking=self.unjudged,
            remarks=self.remarks,
            commands=self._tables.commands,
        )

    @cached_property
    def findings(self) -> list[Finding]:
        """What is wrong and stands for itself, worst first."""
        return found.findings(self._tables, names=self.names)

    @cached_property
    def unexplained(self) -> list[Unexplained]:
        """What users waited that no finding explains, the largest part first."""
        return partition.partition(
            self._tables,
            self.totals.waited_ns,
            self.splits,
            self.spent if self.have_places else (),
            names=self.names,
        )

    @cached_property
    def unjudged(self) -> list[Unjudged]:
        """What could not be judged."""
        return unjudged.unjudged(self._tables)

    @cached_property
    def in_vain(self) -> str:
        """What was never served, and where; empty where all was."""
        return servers.in_vain(self._tables)

    # --- where the time went

    @cached_property
    def totals(self) -> Totals:
        """All servers, added up."""
        return servers.totals(self._tables)

    @cached_property
    def splits(self) -> Splits:
        """What the waits at fronts consist of."""
        return splits(self._tables)

    def servers(self, most: int | None = None) -> list[Server]:
        """List the servers: the costliest front first; of more than ``most``, the first ones and the headline's."""
        return servers.servers(self._tables, self.splits, names=self.names, most=most)

    def alike(self, most: int) -> list[ServerGroup]:
        """List the servers, with those that are alike folded; the first ``most`` of these."""
        return servers.alike(self._tables, self.splits, names=self.names, most=most)

    @cached_property
    def stalls(self) -> list[StallCost]:
        """What stalls cost, the costliest kinds first."""
        return stalls.stall_costs(self._tables)

    @cached_property
    def times(self) -> Mapping[tuple[str, str | None, str | None], int]:
        """How long each kind of time is: phase, and kind and detail of the stall that explains it, if one does."""
        return kinds.times(self._tables)

    @cached_property
    def have_queries(self) -> bool:
        """Whether stores were asked."""
        return queries.are_there(self._tables)

    def queries(self, most: int) -> list[Query]:
        """List the queries of all stores by shape, the longest total first; the first ``most`` of them."""
        return queries.queries(self._tables, most=most) if self.have_queries else []

    def stores(self, most: int) -> list[Store]:
        """List the stores that were asked, with the first ``most`` shapes of each."""
        return queries.stores(self._tables, most=most) if self.have_queries else []

    # --- several places

    @cached_property
    def have_places(self) -> bool:
        """Whether several places were named."""
        return self._tables.have_places

    @cached_property
    def spent(self) -> list[Spent]:
        """Where the time was spent: hosts, and paths between places."""
        return of_places.spent(self._tables)

    @cached_property
    def losses(self) -> list[Lost]:
        """What got lost between which places."""
        return list(of_places.losses(self._tables))

    @cached_property
    def clocks(self) -> list[Clock]:
        """How the places' clocks are."""
        return of_places.clocks(self._tables)

    @cached_property
    def disorders(self) -> list[str]:
        """What was overtaken, doubled or retransmitted needlessly between which places."""
        return list(path_changes.disorders(self._tables))

    @cached_property
    def queues(self) -> list[str]:
        """Between which places packets queue."""
        return list(path_changes.queues(self._tables))

    @cached_property
    def changes(self) -> list[str]:
        """What is changed in packets between which places."""
        return list(path_changes.changes(self._tables))

    @cached_property
    def delays(self) -> list[Delays]:
        """How long packets took on each path, over time."""
        return list(delays(self._tables, self.axis))

    def request_paths(self, most: int) -> list[RequestPath]:
        """Give the way of requests from place to place, of the ``most`` that users waited for longest."""
        return list(journeys(self._tables, most))

    # --- access logs

    @cached_property
    def logs(self) -> list[str]:
        """What is known of each access log."""
        return list(logs.summaries(self._tables))

    def compared_with_logs(self, most: int) -> list[Compared]:
        """List the requests whose users waited longest beyond what the log says."""
        return logs.worst(self._tables, most=most)

    # --- each connection

    @cached_property
    def axis(self) -> TimeAxis:
        """The time axis of all connections."""
        return time_axis(self._tables)

    @cached_property
    def swimlanes(self) -> Swimlanes:
        """All connections by server and time, with what happened on each."""
        return swimlanes(self._tables, self.axis, names=self.names)

    def lanes(self, room: int) -> list[Lane]:
        """Give the connections for so many lines, those whose users waited longest: by server and time."""
        streams = drawn.costliest(self._tables, self.overview.connections, room)
        return drawn.lanes(self._tables, streams, self.axis, names=self.names)

    def stretches(self, lanes: Sequence[Lane], slots: int) -> dict[int, list[Stretch]]:
        """Give what fills the slots of each lane."""
        return drawn.stretches(self._tables, lanes, self.axis, slots)

    def connections(self, most: int | None = None) -> list[Connection]:
        """List the connections, the longest wait first; the first ``most`` of them."""
        return of_one.connections(self._tables, names=self.names, most=most)

    def phases(self, streams: Sequence[int], most: int) -> list[Phase]:
        """List the phases of connections in the order of time, the first ``most`` of them."""
        return of_one.phases(self._tables, streams, most)

    def stalled(self, most: int) -> list[Stalled]:
        """List the stretches in which a next byte did not come, in the order of time; the first ``most`` of them."""
        return stalls.stalled(self._tables, most)

    def details(self) -> Iterator[Details]:
        """Give the facts of each connection."""
        return each.details(self._tables, self.axis, names=self.names)

    # --- what was captured

    @cached_property
    def files(self) -> tuple[CaptureFile, ...]:
        """The captures."""
        return kinds.files(self._tables)

    @cached_property
    def overview(self) -> Overview:
        """What was captured, in numbers."""
        return counts.overview(self._tables)

    @cached_property
    def captured_ns(self) -> int:
        """How long was captured, from the first packet to the last."""
        return captured_ns(self._tables)

    @cached_property
    def tallies(self) -> Tallies:
        """Connections, handshakes and requests by kind."""
        return kinds.tallies(self._tables)

    @cached_property
    def network(self) -> tuple[str, ...]:
        """What the network did to packets; empty when nothing."""
        return kinds.network(self._tables)

    @cached_property
    def remarks(self) -> list[Remark]:
        """What a reader should know of the quality of the capture, warnings first."""
        return remarks.remarks(self._tables)


@contextmanager
def report_of(tables: Tables, *, names: bool = True) -> Iterator[Report]:
    """Have the report of a trace, as long as the block lasts: connections that were captured twice stand in it once.

    Args:
        tables: Of the trace.
        names: With names found in the capture.
    """
    with first_sights(tables):
        yield Report(tables, names=names)
