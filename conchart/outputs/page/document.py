"""A page: one HTML file that works offline and loads nothing. What every page shares.

In: a template, scripts, values. Out: the text of the file. This is the one place where text from a capture meets HTML,
and it is hostile:

- Jinja2 escapes everything in the template (autoescape; nothing but our own scripts and styles is marked safe);
- what scripts need is base64 in blocks that no browser executes;
- scripts put text into the page as text nodes only;
- should all that fail, the Content-Security-Policy runs our scripts alone (by their hashes) and loads nothing.

The same values give the same bytes: no dates, no random ids.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from threading import Lock
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from conchart.labels.phases import PHASES
from conchart.labels.stalls import COLOURS
from conchart.labels.units import format_count, format_ns
from conchart.outputs.page.packed import compress_json
from conchart.outputs.page.plotly_script import carried, policy_hash
from conchart.report.splits import STEPS
from conchart.version import version

LOADING = "loading"
"""The script that every page runs first, by itself: it has to run where the others cannot."""

# Scripts are modules (ECMAScript 16.2), so that tools and tests read them one by one; a page has them joined.
_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./\w+\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) )", re.MULTILINE)


def render_document(
    template: str,
    scripts: tuple[str, ...],
    data: object,
    blocks: Mapping[str, str] = MappingProxyType({}),
    more: Mapping[str, object] = MappingProxyType({}),
    **values: Any,  # noqa: ANN401
) -> str:
    """Return a page as text, to be encoded as UTF-8.

    Args:
        template: Its name; it places ``version``, ``policy``, ``style``, ``loading``, ``blocks`` and ``script``.
        scripts: Their names, in the order in which they build on each other.
        data: What scripts need, as JSON.
        blocks: Tables that they need, packed.
        more: The same as ``data``, for single scripts, by the id of its block.
        values: What else the template names, of any type.
    """
    fixed = prepare(template, scripts)
    page: str = fixed.template.render(
        version=version(),
        policy=fixed.policy,
        style=fixed.style,
        loading=fixed.loading,
        blocks=[("data", None, compress_json(data))]
        + [(f"data-{name}", name, block) for name, block in blocks.items()]
        + [(name, None, compress_json(content)) for name, content in more.items()]
        + [("plotly", None, fixed.plotly)],
        script=fixed.script,
        **values,
    )
    return page


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What is the same on every page that has this template and these scripts."""

    template: Any  # jinja2's type tells nothing more
    policy: str
    style: Markup
    loading: Markup
    """The script that says so when the page cannot be drawn."""
    script: Markup
    plotly: str
    """Compressed, in base64."""


def prepare(template: str, scripts: tuple[str, ...]) -> Fixed:
    """Make ready what does not depend on a trace. Another thread may do so while a capture is read."""
    with _PREPARING:
        return _prepared(template, scripts)


_PREPARING = Lock()


@cache
def _prepared(template: str, scripts: tuple[str, ...]) -> Fixed:
    loading = resource("scripts", f"{LOADING}.js")
    script = _script(scripts)
    plotly, policy = carried()
    return Fixed(
        template=_template(template),
        policy=_policy(policy, policy_hash(loading), policy_hash(script)),
        style=Markup(page_style()),
        loading=Markup(loading),
        script=Markup(script),
        plotly=plotly,
    )


def _policy(*scripts: str) -> str:
    """Nothing may be loaded, and only these scripts run (CSP level 3, section 6.7.2: source lists)."""
    return (
        f"default-src 'none'; script-src {' '.join(scripts)}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _template(name: str) -> Any:  # noqa: ANN401  (jinja2's template type tells nothing more)
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters.update(brief=format_ns, count=format_count)
    return environment.from_string(resource("templates", name))


def _script(names: tuple[str, ...]) -> str:
    parts = "\n".join(_EXPORT.sub("", _IMPORT.sub("", resource("scripts", f"{name}.js"))) for name in names)
    return f'(async () => {{\n"use strict";\ndocument.documentElement.dataset.started = "true";\n{parts}\n}})();\n'


def page_style() -> str:
    """Give what all pages look like: colours of phases and stalls, then the rules."""
    colours = "\n".join(f"  --{kind.name}: {kind.colour};" for kind in PHASES)
    fills = "\n".join(f".k-{kind.name} {{ --fill: var(--{kind.name}); }}" for kind in PHASES)
    fills += "".join(f"\n.s-{step.name} {{ --fill: {step.colour}; }}" for step in STEPS)
    fills += "".join(
        f"\n.w-{word} {{ --stall: {colour}; }}\n.whole.w-{word} {{ --fill: {colour}; }}"
        for word, colour in COLOURS.items()
    )
    hatched = ", ".join(f".k-{kind.name}" for kind in PHASES if kind.hatched)
    rules = resource("templates", "page.css")
    return f":root {{\n{colours}\n}}\n{rules}\n{fills}\n{hatched} {{ background-image: var(--hatch); }}\n"


def resource(folder: str, name: str) -> str:
    """Give a file that comes with the charts."""
    return resources.files("conchart.outputs.page").joinpath(folder, name).read_text(encoding="utf-8")
