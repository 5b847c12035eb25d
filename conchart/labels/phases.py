"""The kinds of phase: names, order, colours, letters and meanings, the same in every chart.

In: nothing. Out: ``PHASES``. The tiling itself is the native core's; how a phase is drawn is decided here alone.

The colours have the hues of Okabe and Ito's set where it fits. Any two stay apart under protanopia, deuteranopia and
tritanopia, striped with white where a boundary is inferred, too; all but the two yellows stand out from white, and all
from a dark page (``tests/test_phases.py`` computes it). Idle is a grey like the others: the wait may be somebody's.
"""

from dataclasses import dataclass

UNDER_WAY = "unfinished at the last packet"
"""Of a request, a stall, a delay: the capture does not show its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseKind:
    """One kind of phase."""

    name: str
    """As in ``phases.kind``."""
    letter: str
    """Stands for the phase in text that has no colours."""
    colour: str
    """``#RRGGBB``."""
    title: str
    """For legends."""
    meaning: str
    """One sentence, without a full stop."""
    waited: bool = False
    """True where a user waits: from the first SYN or the request to the last byte of its response."""
    hatched: bool = False
    """True where the capture does not know: draw it hatched, so that it never looks like a measurement."""


PHASES: tuple[PhaseKind, ...] = (
    PhaseKind(
        name="syn",
        letter="S",
        colour="#D9B44D",
        title="TCP handshake",
        meaning="from the first SYN to the packet that completes the TCP handshake at the client's side",
        waited=True,
    ),
    PhaseKind(
        name="tls",
        letter="T",
        colour="#D55E00",
        title="TLS handshake",
        meaning="from the first byte of a ClientHello until the client may send its first application byte",
        waited=True,
    ),
    PhaseKind(
        name="request",
        letter="q",
        colour="#0696FA",
        title="Request",
        meaning="from the first to the last byte of a request",
        waited=True,
    ),
    PhaseKind(
        name="wait",
        letter="w",
        colour="#9050B4",
        title="Wait for the server",
        meaning="from the last byte of a request to the first byte of its response",
        waited=True,
    ),
    PhaseKind(
        name="transfer",
        letter="x",
        colour="#318B69",
        title="Transfer",
        meaning="from the first to the last byte of a response",
        waited=True,
    ),
    PhaseKind(
        name="idle",
        letter=".",
        colour="#859098",
        title="Idle",
        meaning="nobody owes anybody a byte",
    ),
    PhaseKind(
        name="close",
        letter="c",
        colour="#646672",
        title="Close",
        meaning="from the first FIN or RST after the last byte to the last packet",
    ),
    PhaseKind(
        name="unseen",
        letter="?",
        colour="#E9E90F",
        title="Unseen",
        meaning="the capture cannot tell: it started mid-stream, packets are missing, or nothing over UDP can be read",
        hatched=True,
    ),
)
"""In the order in which a connection goes through them; legends and stacked bars keep it."""

PHASE_BY_NAME: dict[str, PhaseKind] = {phase.name: phase for phase in PHASES}
