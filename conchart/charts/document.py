"""A page: one HTML file that works offline and loads nothing. What every page shares.

In: a template, scripts, values. Out: the text of the file. This is the one place where text from a capture meets HTML,
and it is hostile:

- Jinja2 escapes everything in the template (autoescape; nothing but our own scripts and styles is marked safe);
- what scripts need is JSON in a block that no browser executes, with every character that could end it escaped;
- scripts put text into the page as text nodes only;
- should all that fail, the Content-Security-Policy runs our scripts alone (by their hashes) and loads nothing.

The same values give the same bytes: no dates, no random ids.
"""

import base64
import hashlib
import json
from functools import cache
from importlib import metadata, resources
from typing import Any

import plotly.offline
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from conchart.phases import PHASES
from conchart.telling.splits import STEPS
from conchart.units import format_count, format_ns

# What could end the block (WHATWG HTML, "restrictions for contents of script elements").
HARMLESS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def render_document(template: str, scripts: tuple[str, ...], data: object, **values: Any) -> str:  # noqa: ANN401
    """Return a page as text, to be encoded as UTF-8.

    Args:
        template: Its name; it places ``version``, ``policy``, ``style``, ``data``, ``plotly`` and ``script``.
        scripts: Their names, in the order in which they build on each other.
        data: What scripts need.
        values: What else the template names, of any type.
    """
    plotly_script, script = _plotly(), _script(scripts)
    page: str = _template(template).render(
        version=_version(),
        policy=_policy(plotly_script, script),
        style=Markup(_style()),
        data=Markup(to_json(data)),
        plotly=Markup(plotly_script),
        script=Markup(script),
        **values,
    )
    return page


def to_json(value: object) -> str:
    """Write JSON that can stand in a ``<script>`` block: it cannot end the block, whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(HARMLESS)


def _policy(*scripts: str) -> str:
    """Nothing may be loaded, and only these scripts run (CSP level 3, section 6.7.2: source lists, hashes)."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _version() -> str:
    try:
        return metadata.version("conchart")
    except metadata.PackageNotFoundError:  # run from a source tree that was never installed
        return "(not installed)"


@cache
def _template(name: str) -> Any:  # noqa: ANN401  (jinja2's template type tells nothing more)
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters.update(brief=format_ns, count=format_count)
    return environment.from_string(_resource(name))


@cache
def _plotly() -> str:
    script: str = plotly.offline.get_plotlyjs()
    return script.replace("\r\n", "\n")  # as browsers normalise it before they hash it


@cache
def _script(names: tuple[str, ...]) -> str:
    parts = "\n".join(_resource(f"{name}.js") for name in names)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


@cache
def _style() -> str:
    colours = "\n".join(f"  --{kind.name}: {kind.colour};" for kind in PHASES)
    fills = "\n".join(f".k-{kind.name} {{ --fill: var(--{kind.name}); }}" for kind in PHASES)
    fills += "".join(f"\n.s-{step.name} {{ --fill: {step.colour}; }}" for step in STEPS)
    hatched = ", ".join(f".k-{kind.name}" for kind in PHASES if kind.hatched)
    return (
        f":root {{\n{colours}\n}}\n{_resource('page.css')}\n{fills}\n{hatched} {{ background-image: var(--hatch); }}\n"
    )


def _resource(name: str) -> str:
    return resources.files("conchart.charts").joinpath("templates", name).read_text(encoding="utf-8")
