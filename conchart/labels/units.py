"""The only place where numbers become text for people, and where people's times become nanoseconds.

Integers only: a float of seconds since 1970 is off by a hundred nanoseconds.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from conchart.errors import UsageError

SECOND = 1_000_000_000
THIN_SPACE = "\u2009"

_UNITS = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (SECOND, "s"))
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_ROUND_STEPS = (60 * SECOND, *(10**power for power in range(10, 0, -1)))
"""From the coarsest on: what ``format_ns`` writes is a multiple of one of these."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_PART = re.compile(r"(\d{1,40})(?:\.(\d{1,9}))?\s*(h|min|ms|us|µs|ns|m|s|)")
_PART_NS = {
    "h": 3600 * SECOND,
    "min": 60 * SECOND,
    "m": 60 * SECOND,
    "s": SECOND,
    "": SECOND,
    "ms": 1_000_000,
    "us": 1_000,
    "µs": 1_000,
    "ns": 1,
}
_AMOUNT = re.compile(r"(\d+)(?:\.(\d{1,9}))?\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_INSTANTS = 1 << 63
_TOO_LATE = "after the year 2262, where 64 bits of nanoseconds end"
_EPOCH_SECONDS = re.compile(r"@(\d{1,40})(?:\.(\d{1,9}))?")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")


def format_ns(duration: int) -> str:
    """Write a duration with about three significant digits: ``812 µs``, ``1.63 ms``, ``3 min 12 s``.

    Args:
        duration: Nanoseconds; may be negative.
    """
    if duration < 0:
        return f"-{format_ns(-duration)}"
    for unit_ns, unit in _UNITS:
        text = _three_digits(duration, unit_ns)
        if unit_ns == SECOND:
            break
        if text != "1000":
            return f"{text} {unit}"
    if duration < 60 * SECOND and text != "60.0":
        return f"{text} s"
    seconds = (duration + SECOND // 2) // SECOND
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod((duration + 30 * SECOND) // (60 * SECOND), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def format_exact(duration: int) -> str:
    """Write all digits of a duration in the largest unit that it fills: ``84.000117 ms``."""
    unit_ns, unit = max((pair for pair in _UNITS if pair[0] <= abs(duration)), default=_UNITS[0])
    whole, rest = divmod(abs(duration), unit_ns)
    decimals = f".{rest:0{len(str(unit_ns)) - 1}}" if unit_ns > 1 else ""
    return f"{'−' if duration < 0 else ''}{format_count(whole)}{decimals} {unit}"


def format_difference(before: int, after: int) -> str:
    """Write ``after - before`` as readers compute it from both as they are written: ``-188 ms`` of 337 and 149 ms."""
    difference = _as_written(after) - _as_written(before)
    return f"{'+' if difference > 0 else '-'}{format_ns(abs(difference))}" if difference else "="


def format_range(least: int, most: int) -> str:
    """Write two durations with the unit of both where it is the same: ``72.0–91.0 ms``, ``812 µs–1.63 ms``."""
    low, high = format_ns(least), format_ns(most)
    if low == high:
        return low
    number, _, unit = low.rpartition(" ")
    return f"{number if unit == high.rpartition(' ')[2] and ' ' not in number else low}–{high}"


def format_bytes(count: int) -> str:
    """Write a number of bytes with about three significant digits, in powers of 1000: ``12.3 kB``."""
    for power, unit in enumerate(_BYTE_UNITS):
        text = _three_digits(count, 1000**power)
        if text != "1000":
            return f"{text} {unit}"
    return f"{count} B"


def format_count(count: int) -> str:
    """Write a count with thin spaces between groups of three digits."""
    return f"{count:,}".replace(",", THIN_SPACE)


def format_share(part: int, whole: int) -> str:
    """Write ``part`` of ``whole`` in percent; what is there never reads 0 %, what is not whole never 100 %."""
    if not whole or not part:
        return "0 %"
    percent = (200 * part + whole) // (2 * whole)
    if percent == 0:
        return "<1 %"
    if percent == 100 and part < whole:
        return ">99 %"
    return f"{percent} %"


def count_of(count: int, noun: str, plural: str = "") -> str:
    """Write ``1 packet``, ``2 packets``."""
    return f"{format_count(count)} {noun if count == 1 else plural or noun + 's'}"


def format_instant(at: int) -> str:
    """Write an instant in UTC to the millisecond: ``2026-11-20 23:15:00.123 UTC``.

    Args:
        at: Nanoseconds since the Unix epoch.
    """
    milliseconds = at // 1_000_000
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"@{milliseconds // 1000}.{milliseconds % 1000:03}"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03} UTC"


def format_iso(at: int) -> str:
    """Write an instant in UTC to the microsecond, for programs: ``2026-11-20T23:15:00.123456Z`` (RFC 3339).

    Args:
        at: Nanoseconds since the Unix epoch, of the years that a capture can have.
    """
    return f"{_EPOCH + timedelta(microseconds=at // 1_000):%Y-%m-%dT%H:%M:%S.%fZ}"


def tick_step(span: int, most: int) -> int:
    """Choose the distance between the ticks of a time axis.

    Args:
        span: Length of the axis in nanoseconds.
        most: No more intervals than this.

    Returns:
        Nanoseconds: 1, 2 or 5 times a power of ten; from a minute on, what a clock has.
    """
    steps: list[int] = [
        digit * 10**power for power in range(11) for digit in (1, 2, 5) if digit * 10**power < 60 * SECOND
    ]
    steps += [seconds * SECOND for seconds in (60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400)]
    for step in steps:
        if span <= step * most:
            return step
    return 86400 * SECOND * -(-span // (86400 * SECOND * most))


def format_tick(value: int, step: int) -> str:
    """Write a tick of an axis exactly and briefly: ``0``, ``250 ms``, ``1.5 s``, ``2 min``.

    Args:
        value: Nanoseconds after the start of the axis, a multiple of ``step``.
        step: What ``tick_step`` chose.
    """
    if not value:
        return "0"
    if step >= 60 * SECOND:
        return format_ns(value)
    unit_ns, unit = max(pair for pair in _UNITS if pair[0] <= value)
    whole, rest = divmod(value, unit_ns)
    decimals = f"{rest:0{len(str(unit_ns)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}{'.' if decimals else ''}{decimals} {unit}"


def _as_written(duration: int) -> int:
    """Round a duration to what ``format_ns`` writes: the roundest that is written so."""
    text = format_ns(duration)
    rounded = ((2 * duration + step) // (2 * step) * step for step in _ROUND_STEPS)
    return next((near for near in rounded if format_ns(near) == text), duration)


def _three_digits(value: int, unit: int) -> str:
    """``value / unit`` rounded to three significant digits; ``1000`` when it needs a larger unit."""
    for digits in (2, 1, 0):
        scaled = (value * 10**digits * 2 + unit) // (2 * unit)
        if scaled < 1000:
            whole, rest = divmod(scaled, 10**digits)
            return f"{whole}.{rest:0{digits}}" if digits and unit > 1 else str(whole)
    return "1000"


def parse_bytes(text: str) -> int:
    """Read an amount of memory as people write it: ``512MB``, ``2 GiB``, ``1.5g``; without a unit it is bytes.

    Raises:
        UsageError: It is no such amount.
    """
    amount = _AMOUNT.fullmatch(text.strip())
    if not amount or len(amount[1]) > 15:
        raise UsageError(f"cannot read the amount {text!r}: give a number and a unit (512MB, 2GiB)")
    power = " kmgt".index(amount[3].lower() or " ")
    unit: int = (1024 if amount[4] else 1000) ** power
    return int(amount[1]) * unit + _fraction(amount[2], unit)


def parse_duration(text: str) -> int:
    """Read a duration as people write it: ``80ms``, ``1m30s``, ``2.5``; without a unit it is seconds.

    Raises:
        UsageError: It is none, or longer than a day.
    """
    duration = _parse_duration(text.strip())
    if duration is None or duration > 86_400 * SECOND:
        raise UsageError(f"cannot read the duration {text!r}: give a number and a unit (80ms, 1m30s), up to a day")
    return duration


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """An instant that a person asked for."""

    ns: int
    relative: bool
    """True: nanoseconds after the first packet of the capture. False: since the Unix epoch."""

    def __post_init__(self) -> None:
        """Refuse what no packet can have.

        Raises:
            UsageError: Its nanoseconds need more than 64 bits.
        """
        if not -_INSTANTS <= self.ns < _INSTANTS:
            side = "before the year 1677, where 64 bits of nanoseconds begin" if self.ns < 0 else _TOO_LATE
            raise UsageError(f"cannot read the time {format_when(self)}: it is {side}")


def parse_when(text: str) -> When:
    """Read an instant as people write it.

    ``2.5``, ``250ms``, ``1m30s``: after the first packet of the capture. ``2026-11-20T23:15:00.5Z``: that instant;
    without a zone it is local time. ``@1700000000.5``: seconds since the Unix epoch.

    Raises:
        UsageError: It is none of these.
    """
    return _parse_when(text.strip())


def format_when(when: When) -> str:
    """Write an instant to the nanosecond, as ``parse_when`` reads it."""
    whole, rest = divmod(abs(when.ns), SECOND)
    decimals = f".{rest:09}".rstrip("0") if rest else ""
    return f"{'' if when.relative else '@'}{'-' if when.ns < 0 else ''}{whole}{decimals}"


def _parse_when(text: str) -> When:
    if epoch := _EPOCH_SECONDS.fullmatch(text):
        return When(ns=int(epoch[1]) * SECOND + _fraction(epoch[2], SECOND), relative=False)
    if iso := _ISO.fullmatch(text):
        return When(ns=_iso_seconds(text, iso) * SECOND + _fraction(iso[2], SECOND), relative=False)
    ns = _parse_duration(text)
    if ns is None:
        raise UsageError(
            f"cannot read the time {text!r}: give seconds after the first packet (2.5, 250ms, 1m30s), "
            "a date (2026-11-20T23:15:00Z) or seconds since 1970 (@1700000000.5)"
        )
    return When(ns=ns, relative=True)


def _parse_duration(text: str) -> int | None:
    parts = list(_PART.finditer(text))
    whole = "".join(part[0] for part in parts) == text
    if not parts or not whole or (len(parts) > 1 and not all(part[3] for part in parts)):
        return None
    return sum(int(part[1]) * _PART_NS[part[3]] + _fraction(part[2], _PART_NS[part[3]]) for part in parts)


def _fraction(digits: str | None, unit: int) -> int:
    return int(digits) * unit // 10 ** len(digits) if digits else 0


def _iso_seconds(text: str, iso: re.Match[str]) -> int:
    zone = "+00:00" if iso[3] == "Z" else iso[3] or ""
    if zone and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    day_time = iso[1] if len(iso[1]) > 10 else f"{iso[1]}T00:00:00"
    try:
        # astimezone() takes a time without a zone for local time.
        moment = datetime.fromisoformat(day_time + zone).astimezone(timezone.utc)
    except (ValueError, OverflowError) as error:
        words = "a zone is less than 24 hours away from UTC" if "timedelta" in str(error) else error
        raise UsageError(f"cannot read the time {text!r}: {words}") from None
    return (moment - _EPOCH) // timedelta(seconds=1)
