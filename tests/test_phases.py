"""The palette: any two phases stay apart for every kind of colour vision, striped or not, and from what is behind."""

from itertools import permutations, product
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import pytest

from conchart.labels.phases import PHASES, PhaseKind
from conchart.labels.stalls import COLOURS
from conchart.report.splits import STEPS

Triple = tuple[float, float, float]

BACKGROUNDS = {"a white page": "#FFFFFF", "a dark page": "#16181D", "a black terminal": "#000000"}
YELLOW = {"syn", "unseen"}
"""What is light enough to be yellow or gold has no contrast of 3 with white."""
STRIPED = ("tls", "request", "wait", "transfer")
"""Phases whose boundaries may be inferred: then white stripes are drawn over the colour."""
STRIPES = 0.28, 0.85
"""The part of the bar that stripes cover, and how opaque they are."""

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


def luminance(light: Triple) -> float:
    red, green, blue = light
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """As WCAG 2 has it: from 1 to 21."""
    darker, lighter = sorted(luminance(linear(colour)) + 0.05 for colour in (one, other))
    return lighter / darker


def striped(colour: str) -> Triple:
    """The light of a colour with white stripes, from so far away that they melt into it."""
    cover, opacity = STRIPES
    mixed = "#" + "".join(f"{round(255 * opacity + int(colour[i : i + 2], 16) * (1 - opacity)):02X}" for i in (1, 3, 5))
    red, green, blue = (cover * m + (1 - cover) * c for m, c in zip(linear(mixed), linear(colour), strict=True))
    return red, green, blue


def seen_as(light: Triple, vision: str) -> Triple:
    """CIE L*a*b* (D65) of what a person with this vision sees."""
    r, g, b = (min(1.0, max(0.0, sum(m * c for m, c in zip(row, light, strict=True)))) for row in VISION[vision])

    def curve(t: float) -> float:
        return float(t ** (1 / 3)) if t > 0.008856 else 7.787 * t + 16 / 116

    x = curve((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047)
    y = curve(0.2126 * r + 0.7152 * g + 0.0722 * b)
    z = curve((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one: Triple, other: Triple) -> float:
    """CIEDE2000 of two L*a*b* colours, in the notation of Sharma, Wu and Dalal (2005)."""

    def grey(chroma: float) -> float:
        return sqrt(chroma**7 / (chroma**7 + 25**7))

    mean = (hypot(*one[1:]) + hypot(*other[1:])) / 2
    (l1, a1, b1), (l2, a2, b2) = ((light, a * (1.5 - grey(mean) / 2), b) for light, a, b in (one, other))
    c1, c2 = hypot(a1, b1), hypot(a2, b2)
    h1 = degrees(atan2(b1, a1)) % 360
    turn = (degrees(atan2(b2, a2)) - h1 + 180) % 360 - 180
    l_mean, c_mean, h_mean = (l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2) % 360
    hues = ((0.17, 1, 150), (0.24, 2, 0), (0.32, 3, 6), (0.20, 4, 117))
    t = 1 + sum(share * cos(radians(times * h_mean + shift)) for share, times, shift in hues)
    lightness = (l2 - l1) / (1 + 0.015 * (l_mean - 50) ** 2 / sqrt(20 + (l_mean - 50) ** 2))
    chroma = (c2 - c1) / (1 + 0.045 * c_mean)
    hue = 2 * sqrt(c1 * c2) * sin(radians(turn / 2)) / (1 + 0.015 * c_mean * t)
    blue = -2 * grey(c_mean) * sin(radians(60 * exp(-(((h_mean - 275) / 25) ** 2))))
    return sqrt(lightness**2 + chroma**2 + hue**2 + blue * chroma * hue)


@pytest.mark.parametrize(
    ("one", "other", "published"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
    ],
)
def test_differences_are_those_that_were_published(one: Triple, other: Triple, published: float) -> None:
    assert difference(one, other) == pytest.approx(published, abs=1e-4)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize(("one", "other"), list(permutations(PHASES, 2)), ids=lambda phase: phase.name)
def test_any_two_phases_are_told_apart(vision: str, one: PhaseKind, other: PhaseKind) -> None:
    """Stripes are a sign of their own, so that less has to be left of the colours under them."""
    plain = difference(seen_as(linear(one.colour), vision), seen_as(linear(other.colour), vision))
    assert plain >= 11, f"{one.name} and {other.name} differ by {plain:.1f}; 1 is just noticeable"
    if one.name in STRIPED:
        under = [linear(other.colour)] + [striped(other.colour)] * (other.name in STRIPED)
        least = min(difference(seen_as(striped(one.colour), vision), seen_as(light, vision)) for light in under)
        assert least >= 8, f"striped {one.name} and {other.name} differ by {least:.1f}"


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("word", COLOURS)
def test_what_was_stalled_is_told_apart_from_every_phase_and_step(vision: str, word: str) -> None:
    """A stall covers all of an idle lane, or the lower edge of a bar: its place is a sign, too."""
    seen = seen_as(linear(COLOURS[word]), vision)
    for other in ({phase.colour for phase in PHASES} | {step.colour for step in STEPS} | {*COLOURS.values()}) - {
        COLOURS[word]
    }:
        assert difference(seen, seen_as(linear(other), vision)) >= 10, other


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("word", COLOURS)
def test_what_was_stalled_stands_out_from_what_is_behind_it(word: str, background: str) -> None:
    assert contrast(COLOURS[word], BACKGROUNDS[background]) >= 3


@pytest.mark.parametrize(
    ("phase", "background"),
    [
        (phase, background)
        for phase, background in product(PHASES, BACKGROUNDS)
        if not (phase.name in YELLOW and background == "a white page")
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_every_phase_stands_out_from_what_is_behind_it(phase: PhaseKind, background: str) -> None:
    assert contrast(phase.colour, BACKGROUNDS[background]) >= 3, "WCAG 1.4.11 asks graphics for a contrast of 3"


def test_names_and_letters_are_unique() -> None:
    assert len({phase.name for phase in PHASES}) == len(PHASES) == len({phase.letter for phase in PHASES})
