"""What a person may choose about how a trace is drawn. In: nothing. Out: ``DrawOptions``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawOptions:
    """Choices of the page, the charts and the terminal; none of them changes what the tables hold."""

    packets: bool = False
    """Mark every packet on its lane; the trace was read with ``packets=True``."""
    explained: int | None = None
    """The stream at whose ladder the page opens; the trace was read with ``explain``."""
    retransmits: bool = True
    """Mark retransmitted packets."""
    names: bool = True
    """Show names found in the capture (SNI, Host) beside addresses. Nothing is ever looked up."""
    size: tuple[int, int] = (1600, 900)
    """Width and height of a picture, in pixels."""
    dark: bool = False
    """Draw pictures for a dark background."""
    findings: bool = True
    """Show what is wrong and where most of the wait is; without, readers look for it themselves."""
    verbose: bool = False
    """Tell all there is in text, instead of one screen."""
