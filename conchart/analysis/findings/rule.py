"""Findings as files: one Markdown file is the documentation of a finding and the rule that finds it.

In: ``rules/*.md``, folders of the user's. Out: :class:`Rule`, thresholds. ``docs/findings.md`` says how to write one.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from conchart.analysis.findings.front_matter import FIRST_LINE, RULES, Front, FrontMatterError, front_matter, halves
from conchart.errors import UsageError
from conchart.labels.changes import CHANGES
from conchart.labels.units import format_bytes
from conchart.version import version

RULE_FORMAT = 1
"""The version of the form of rules: grows when a file that was a rule is none any more, or means something else."""
_LARGEST = 1_000_000
"""Bytes of a finding's file: conchart's own have at most 8,000."""
_MOST = 10**18
"""Of a threshold: 31 years in nanoseconds. More would not fit into the 64 bits of an instant, when added to one."""

_LISTS = ("because", "fault", "clean", "implies", "whatif")
_TEXTS = ("title", "seen", "who", "why", "shape")
_SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_VERSIONS = re.compile(r"(<=|>=|<|>|=)?\s*(\d+(?:\.\d+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What to change, in one product's words."""

    line: str
    at: Literal["server", "client"] = "server"
    """Which end of the connection has to change: a proxy is the client of its backend."""
    product: str | None = None
    """As it names itself in ``Server`` or ``User-Agent``; None where it is true of any."""
    versions: str | None = None
    """Comma-separated bounds that all hold: ``>=1.9, <1.29.7``."""
    when: str | None = None
    """A fact of the row without which it is no advice."""

    def __post_init__(self) -> None:
        """Refuse what can be no fix."""
        if self.at not in ("server", "client"):
            raise ValueError(f"at must be server or client, not {self.at!r}")
        for bound in (self.versions or "").split(",") if self.versions else ():
            if not _VERSIONS.fullmatch(bound.strip()):
                raise ValueError(f"cannot read the version {bound.strip()!r}: a bound has the form <1.29.7 or >=2.4")

    def suits(self, software: str) -> bool:
        """Tell whether it is for this software, as it names itself: ``nginx/1.22.1``."""
        if not self.product:
            return False
        found = re.search(rf"(?i)\b{re.escape(self.product)}\b(?:[/ ]v?(\d+(?:\.\d+)*))?", software)
        if not found or not self.versions or not found[1]:
            return bool(found)
        return all(_holds(found[1], bound.strip()) for bound in self.versions.split(","))


def _holds(version: str, bound: str) -> bool:
    match = _VERSIONS.fullmatch(bound)
    assert match  # __post_init__ has looked
    mine, theirs = ([int(part) for part in text.split(".")] for text in (version, match[2]))
    length = max(len(mine), len(theirs))
    one, other = (parts + [0] * (length - len(parts)) for parts in (mine, theirs))
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}.get(match[1], one == other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A finding: what it means, what finds it, what to do about it."""

    name: str
    """The file's name without its suffix: ``backend-no-keepalive``."""
    title: str
    about: Literal["server", "client", "capture"]
    """What a row of the table stands for."""
    severity: Literal["cost", "note", "failure", "quality"] = "cost"
    """By its cost alone; never more than a note; at least a warning; about the capture: it comes before the others."""
    opening: Literal["none", "counted", "needed"] = "none"
    """What it reads of how connections open (``setups``): nothing; what an opening costs beside other delays; all that
    it judges, so that it finds nothing on connections that are older than the capture."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """For a table, a condition that holds for one of its rows at least where there is something to be found: the rule
    is asked only then."""
    because: tuple[str, ...] = ()
    """Findings of which this one may be a consequence, by name."""
    seen: str
    """What was seen; ``{name}`` is a fact of the row, ``{name:noun}`` counts nouns, ``{name_ns}`` is a duration."""
    who: str = ""
    """Who did it, in the same way."""
    why: str
    shape: str = ""
    """What it looks like on the chart, for the table "Shapes" of ``docs/reading-the-chart.md``."""
    fixes: tuple[Fix, ...] = ()
    fault: tuple[str, ...] = ()
    """Captures that show it, as folders of ``captures``."""
    clean: tuple[str, ...] = ()
    """Captures that are like those but for the fault: nothing is found in them."""
    implies: tuple[str, ...] = ()
    """Other findings in the captures that show it."""
    whatif: tuple[str, ...] = ()
    """The changes that mend it, as ``conchart whatif`` names them; none where it predicts no such change."""
    sql: str
    page: str
    """The Markdown without its front matter."""
    path: str
    sql_line: int
    """The line of the file on which the SQL begins."""
    lines: Mapping[str, int]
    """The line of the file on which each thing of the front matter stands."""

    @property
    def facts(self) -> set[str]:
        """The facts that its texts and fixes name."""
        return set(_PLACE.findall(self.seen + self.who)) | {fix.when for fix in self.fixes if fix.when}


def parse_rule(path: str, text: str) -> Rule:
    """Read one file.

    Raises:
        UsageError: It is no rule; the message names file and line.
    """
    try:
        front, rest = halves(text)
    except FrontMatterError as error:
        raise UsageError(f"{path}:1: {error}") from None
    read = _front(path, front, first_line=FIRST_LINE)
    values, places = dict(read.values), {name: line + FIRST_LINE for name, line in read.lines.items()}
    end = FIRST_LINE + front.count("\n") + 1
    _check_format(f"{path}:{places.get('format', 1)}", values.pop("format", RULE_FORMAT))
    blocks = list(_SQL.finditer(text))
    if len(blocks) != 1:
        raise UsageError(f"{path}:{end + 1}: a finding needs exactly one ```sql block, not {len(blocks)}")
    fixes = _fixes(path, values.pop("fixes", None), places.get("fixes", 1), read.items.get("fixes", []))
    try:
        rule = Rule(
            name=Path(path).stem,
            **(
                values
                | {name: _names(name, values.get(name)) for name in _LISTS}
                | {"needs": _needs(values.get("needs"))}
            ),
            fixes=fixes,
            sql=blocks[0][1],
            page=rest.strip("\n"),
            path=path,
            sql_line=text.count("\n", 0, blocks[0].start(1)) + 1,
            lines=places,
        )
        _check(rule)
    except (TypeError, ValueError) as error:
        words = _plain(error)
        line = next((line for name, line in places.items() if re.search(rf"\b{re.escape(str(name))}\b", words)), 1)
        raise UsageError(f"{path}:{line}: {words}") from None
    return rule


def _check_format(place: str, value: object) -> None:
    """Refuse a rule for a later conchart, before something in it is taken for a mistake."""
    if type(value) is not int or value < 1:
        raise UsageError(f"{place}: format is the version of the form of rules: {RULE_FORMAT}, not {value!r}")
    if value > RULE_FORMAT:
        raise UsageError(
            f"{place}: the rule has format {value}, and conchart {version()} knows format {RULE_FORMAT}: "
            "it needs a later conchart (pip install --upgrade conchart)"
        )


def _front(path: str, text: str, *, first_line: int) -> Front:
    try:
        return front_matter(text)
    except FrontMatterError as error:
        raise UsageError(f"{path}:{first_line + error.line}: {error}") from None


def _fixes(path: str, fixes: object, line: int, items: Iterable[int]) -> tuple[Fix, ...]:
    if fixes is None:
        return ()
    if not isinstance(fixes, list):
        raise UsageError(f"{path}:{line}: fixes is a list")
    return tuple(_fix(f"{path}:{item + FIRST_LINE}", fix) for item, fix in zip(items, fixes, strict=True))


def _fix(place: str, fix: object) -> Fix:
    try:
        if not isinstance(fix, dict):
            raise TypeError("it has the form {at: …, product: …, versions: …, line: …}")
        versions = fix.get("versions")
        return Fix(**(fix | {"versions": None if versions is None else str(versions)}))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{place}: a fix: {_plain(error)}") from None


def _names(name: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"{name} is a list of names")
    return tuple(value)


def _needs(needs: object) -> dict[str, str]:
    if needs is None:
        return {}
    if not isinstance(needs, dict) or not all(value is True or isinstance(value, str) for value in needs.values()):
        raise TypeError("needs has the form table: condition")
    return {str(table): "true" if condition is True else condition for table, condition in needs.items()}


def _plain(error: Exception) -> str:
    """What Python says of arguments, in words about lines."""
    if unknown := re.search(r"unexpected keyword argument '(\w+)'", str(error)):
        return f"nothing is called {unknown[1]}"
    if missing := re.search(r"missing .* keyword-only arguments?: (.*)", str(error)):
        return f"it has no {missing[1]}"
    return str(error)


def _check(rule: Rule) -> None:
    allowed = {
        "about": ("server", "client", "capture"),
        "severity": ("cost", "note", "failure", "quality"),
        "opening": ("none", "counted", "needed"),
    }
    for name, values in allowed.items():
        if getattr(rule, name) not in values:
            raise ValueError(f"{name} is one of {', '.join(values)}, not {getattr(rule, name)!r}")
    if unknown := set(re.findall(r"\$(\w+)", " ".join(rule.needs.values()))) - thresholds().keys():
        raise ValueError(f"needs: no threshold {', '.join(sorted(unknown))}")
    if unknown := set(rule.whatif) - set(CHANGES):
        raise ValueError(f"whatif knows {', '.join(CHANGES)}, not {', '.join(sorted(unknown))}")
    for name in _TEXTS:
        if not isinstance(getattr(rule, name), str):
            raise TypeError(f"{name} is text")


@cache
def _own_rules() -> tuple[Rule, ...]:
    shown = "conchart/analysis/findings/rules"
    files = sorted(file.name for file in RULES.iterdir() if file.suffix == ".md")
    return tuple(parse_rule(f"{shown}/{name}", (RULES / name).read_text(encoding="utf-8")) for name in files)


def load_rules(folders: Iterable[str | os.PathLike[str]] = ()) -> tuple[Rule, ...]:
    """Give conchart's own rules, and those in folders; of the same name, the one in the last folder counts.

    Raises:
        UsageError: A folder has none, or one cannot be read.
    """
    rules = {rule.name: rule for rule in _own_rules()}
    for folder in folders:
        try:
            files = sorted(Path(folder).glob("*.md"))
            rules |= {path.stem: parse_rule(str(path), _text(path)) for path in files}
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read findings in {os.fspath(folder)!r}: {error}") from None
        if not files:
            raise UsageError(f"no findings in {os.fspath(folder)!r}: expected files named *.md")
    for rule in rules.values():
        for name in ("because", "implies"):
            if unknown := set(getattr(rule, name)) - rules.keys():
                raise UsageError(f"{rule.path}:{rule.lines[name]}: {name}: no finding {', '.join(sorted(unknown))}")
    return tuple(rules.values())


def _text(path: Path) -> str:
    """Give what a file says. What is none (a pipe, a device) may never end."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise UsageError(f"{path} is not a file: a rule is a Markdown file")
    if about.st_size > _LARGEST:
        raise UsageError(f"{path} has {format_bytes(about.st_size)}: a rule has at most {format_bytes(_LARGEST)}")
    return path.read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """From where on something is a finding."""

    value: float
    means: str


@cache
def thresholds() -> dict[str, Threshold]:
    """Give every threshold by its name."""
    path = "conchart/analysis/findings/rules/thresholds.yaml"
    read = _front(path, (RULES / "thresholds.yaml").read_text(encoding="utf-8"), first_line=1)
    return {name: Threshold(**values) for name, values in read.values.items()}


def chosen_thresholds(given: Mapping[str, float]) -> dict[str, float]:
    """Give the value of each threshold, some of them given.

    Raises:
        UsageError: There is no such threshold, or it cannot have that value.
    """
    if unknown := given.keys() - thresholds().keys():
        raise UsageError(f"no threshold {', '.join(sorted(unknown))}; there are {', '.join(sorted(thresholds()))}")
    for name, value in given.items():
        if not 0 <= value <= _MOST:  # nor is it NaN
            raise UsageError(f"the threshold {name} cannot be {value}: give a number from 0 to {_MOST}")
    return {name: threshold.value for name, threshold in thresholds().items()} | dict(given)
