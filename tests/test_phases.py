"""The palette: any two phases stay apart for every kind of colour vision, and on a dark terminal."""

from itertools import combinations

import pytest

from conchart.phases import PHASES, PhaseKind

Triple = tuple[float, float, float]

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
VISION: dict[str, tuple[Triple, Triple, Triple]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


def linear(colour: str) -> Triple:
    """``#RRGGBB`` in linear light (IEC 61966-2-1)."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))

    def decode(c: float) -> float:
        return c / 12.92 if c <= 0.04045 else float(((c + 0.055) / 1.055) ** 2.4)

    return decode(red), decode(green), decode(blue)


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def seen_as(colour: str, vision: str) -> Triple:
    """CIE L*a*b* (D65) of what a person with this vision sees."""
    light = linear(colour)
    r, g, b = (min(1.0, max(0.0, sum(m * c for m, c in zip(row, light, strict=True)))) for row in VISION[vision])

    def curve(t: float) -> float:
        return float(t ** (1 / 3)) if t > 0.008856 else 7.787 * t + 16 / 116

    x = curve((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047)
    y = curve(0.2126 * r + 0.7152 * g + 0.0722 * b)
    z = curve((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize(("one", "other"), list(combinations(PHASES, 2)), ids=lambda phase: phase.name)
def test_any_two_phases_are_told_apart(vision: str, one: PhaseKind, other: PhaseKind) -> None:
    pairs = zip(seen_as(one.colour, vision), seen_as(other.colour, vision), strict=True)
    difference = sum((a - b) ** 2 for a, b in pairs) ** 0.5
    assert difference >= 15, f"{one.name} and {other.name} differ by {difference:.1f}; 2.3 is just noticeable"


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_every_phase_stands_out_from_a_black_terminal(phase: PhaseKind) -> None:
    assert (luminance(phase.colour) + 0.05) / 0.05 >= 3, "WCAG 1.4.11 asks graphics for a contrast of 3"


def test_names_and_letters_are_unique() -> None:
    assert len({phase.name for phase in PHASES}) == len(PHASES) == len({phase.letter for phase in PHASES})
