"""What a notebook shows, of a report that was made by hand: no database is needed."""

import pytest

from conchart.outputs.notebook import as_html, chart
from conchart.report.connections import Connection, Phase
from tests.conftest import T0
from tests.report.test_report import by_hand

MS = 1_000_000


def test_the_table_is_made_without_a_database() -> None:
    times = {("wait", None, None): 600 * MS, ("wait", "held", None): 400 * MS, ("syn", None, None): 2 * MS}
    table = as_html(by_hand(times=times))
    assert table.startswith("<table><caption>1 connection; users waited 1.00 s")
    assert "<td>serious</td><td>Slow server: it takes long to answer" in table
    assert "<td>1.00 s</td><td></td></tr><tr><td>phase</td><td>TCP handshake</td><td>2.00 ms</td>" in table


def test_the_figure_is_drawn_without_a_database() -> None:
    pytest.importorskip("plotly")
    one = Connection(
        stream=3, client_ip="::1", client_port=5000, server_ip="10.0.0.9", server_port=80, name="<b>", opened_at=T0
    )
    wait = Phase(stream=3, kind="wait", start_at=T0 + MS, end_at=T0 + 5 * MS, start_frame=4, end_frame=6, inferred=True)
    figure = chart(by_hand(connections=lambda most: [one][:most], phases=lambda streams, most: [wait]))  # noqa: ARG005
    (bars,) = figure.data
    assert list(bars.y) == ["3 · [::1]:5000 → &lt;b&gt;:80"]
    assert (list(bars.base), list(bars.x)) == ([1.0], [4.0])
    assert bars.customdata[0].endswith("(inferred): 4.00 ms, frames 4 to 6")
    assert figure.layout.title.text == "1 connection"
