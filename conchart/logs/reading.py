"""Files of access logs → ``logs`` and ``log_lines``, by the core, in one streaming pass over each.

In: what somebody says of each file (``nginx=access.log``), format strings, the tables of a capture. Out: a row per line
that can be read; the others are counted.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conchart import _native
from conchart.errors import CaptureError, UsageError
from conchart.logs.formats import PRODUCTS, LogFormat, formats_of
from conchart.store.tables import Tables

_NAMED = re.compile(rf"(?s)({'|'.join(PRODUCTS)})=(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLog:
    """A file, and how its lines may be built."""

    path: str
    product: str
    formats: Sequence[LogFormat]


def access_logs(named: Iterable[str | os.PathLike[str]], texts: Iterable[str] = ()) -> list[AccessLog]:
    """Read what somebody says of logs.

    Args:
        named: ``nginx=access.log`` and the like. Without a product, the file has JSON, or what nginx writes.
        texts: Format strings as in the server's configuration: one for all logs, or one for each, in their order. A
            product in front (``haproxy=%ci …``) makes it that of the logs of this product.

    Raises:
        UsageError: A format has no field, or there are too many.
    """
    logs = [_named(os.fspath(log)) for log in named]
    of_product, rest = {}, []
    for text in texts:
        match = _NAMED.fullmatch(text)
        if match:
            of_product[match[1]] = match[2]
        else:
            rest.append(text)
    if (of_product or rest) and not logs:
        raise UsageError("--log-format: it needs a log (--access-log nginx=access.log)")
    if rest and len(rest) not in (1, len(logs)):
        raise UsageError(f"--log-format: give one for all logs, or one for each: {len(rest)} for {len(logs)} logs")
    per_log: list[str | None] = [*(rest * len(logs) if len(rest) == 1 else rest)] or [None] * len(logs)
    return [
        AccessLog(path=path, product=product, formats=formats_of(product, of_product.get(product, text)))
        for (product, path), text in zip(logs, per_log, strict=True)
    ]


def _named(text: str) -> tuple[str, str]:
    product, sign, path = text.partition("=")
    if sign and product in PRODUCTS:
        if not path:
            raise UsageError(f"--access-log {text}: name the file (--access-log {text}access.log)")
        return product, path
    if sign and re.fullmatch(r"\w+", product) and not os.path.exists(text):  # noqa: PTH110  (it may be no path at all)
        raise UsageError(f"--access-log {text}: the product is one of {', '.join(PRODUCTS)}, not {product}")
    raise UsageError(f"--access-log {text}: name the product (--access-log nginx={text})")


_KEEP = """
    INSERT INTO log_lines BY NAME SELECT {log}::INTEGER AS log, * FROM parsed_lines
"""


def read_logs(tables: Tables, logs: Iterable[AccessLog]) -> None:
    """Fill the part of ``logs`` and ``log_lines`` that the files tell.

    Raises:
        CaptureError: A file cannot be opened, or no line of it can be read.
    """
    rows: list[tuple[object, ...]] = []
    for number, log in enumerate(logs):

        def take(batch: object, number: int = number) -> None:
            tables.lend_batch("parsed_lines", batch)
            tables.execute(_KEEP.format(log=number))

        try:
            result = _native.read_log(log.path, [each.layout for each in log.formats], take)
        except OSError as error:
            raise CaptureError(f"cannot read the access log {log.path}: {error}") from None
        finally:
            tables.execute("DROP TABLE IF EXISTS parsed_lines")
        lines, malformed, first, place, resolution, zoned, broken = result
        found = log.formats[place]
        if lines and lines == malformed:
            raise CaptureError(_unread(log, lines, first))
        rows.append(
            (number, log.path, log.product, found.text, list(found.times), found.instant, lines, malformed, first)
            + (broken, resolution, zoned)
        )
    tables.add("logs", ((*row, *[None] * 8) for row in rows))
    tables.logs_were_read()


def _unread(log: AccessLog, lines: int, first: int | None) -> str:
    tried = log.formats[0].text
    return (
        f"{log.path}:{first}: no line of {lines:,} has the format of {log.product}\n"
        f"  Expected {tried}{' or another usual format' if len(log.formats) > 1 else ''}.\n"
        "  Give the format as it stands in the server's configuration: --log-format '…'"
    )
