"""How many rows an output lists. Each output says how many more there are. In: nothing. Out: numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Rows at most."""

    servers: int
    findings: int


PAGE = Limits(servers=50, findings=100)
TERMINAL = Limits(servers=12, findings=20)
"""``conchart findings`` and ``-v`` list all findings: a terminal has the limit for those of a comparison."""
