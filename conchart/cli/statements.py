"""Files that SQL statements write, as far as their text tells.

In: SQL. Out: names of files. DuckDB itself divides the text into statements and words.
"""

import re
from collections.abc import Iterator

import duckdb

from conchart.errors import UsageError

_KIND, _STATEMENT = duckdb.token_type, duckdb.StatementType
_OF_TABLES = (
    *(_STATEMENT.SELECT, _STATEMENT.INSERT, _STATEMENT.UPDATE, _STATEMENT.DELETE, _STATEMENT.CREATE),
    *(_STATEMENT.CREATE_FUNC, _STATEMENT.DROP, _STATEMENT.ALTER, _STATEMENT.ANALYZE, _STATEMENT.TRANSACTION),
)
"""Statements that write no file whose name they contain."""
_NAME = re.compile(r"""'((?:[^']|'')*)'|"((?:[^"]|"")*)"|\$(\w*)\$(.*?)\$\3\$|([^\s'"$(;]+)""", re.DOTALL)


def written_files(sql: str) -> Iterator[str]:
    """Give the files and folders that the statements may write: what COPY, EXPORT, ATTACH, SET and PRAGMA name.

    Raises:
        UsageError: The target of a COPY is an expression, so that nobody knows what it writes.
        UnicodeEncodeError: The SQL is not UTF-8.
        duckdb.Error: It cannot be parsed.
    """
    sql.encode()
    for statement in duckdb.extract_statements(sql):
        if statement.type not in _OF_TABLES:
            words = [*_words(statement.query)]
            # PREPARE and EXPLAIN ANALYZE contain the statement.
            copies = any(kind == _KIND.keyword and word.upper().startswith("COPY") for word, kind in words)
            yield from (
                _target(words) if copies else (_unquoted(word) for word, kind in words if kind == _KIND.string_const)
            )


def _words(sql: str) -> Iterator[tuple[str, duckdb.token_type]]:
    """Give the words of a statement outside of parentheses, each with its kind and the space and comments after it."""
    encoded, depth = sql.encode(), 0
    tokens = duckdb.tokenize(sql)
    for (start, kind), end in zip(tokens, [*(start for start, _ in tokens[1:]), len(encoded)], strict=True):
        word = encoded[start:end].decode(errors="surrogateescape")
        if depth == 0:
            yield word, kind
        if kind == _KIND.operator:
            depth += word[:1].count("(") - word[:1].count(")")


def _target(words: list[tuple[str, duckdb.token_type]]) -> Iterator[str]:
    """Give what a COPY writes: the word after its last TO. COPY … FROM writes a table."""
    places = [
        place for place, (word, kind) in enumerate(words) if kind == _KIND.keyword and re.match(r"(?i)to\b", word)
    ]
    if places:
        word, kind = words[places[-1] + 1]
        if kind not in (_KIND.string_const, _KIND.identifier) or word[:2].upper() == "E'":
            raise UsageError(
                "query: COPY: write the name of the file as a string ('out.csv'), so that conchart can tell that it is "
                "no input"
            )
        yield _unquoted("".join(word for word, _ in words[places[-1] + 1 :]) if kind == _KIND.identifier else word)


def _unquoted(word: str) -> str:
    """Give the name that a word stands for."""
    if not (found := _NAME.match(word)):
        return word
    single, double, _, dollars, bare = found.groups()
    for text, mark in ((single, "'"), (double, '"')):
        if text is not None:
            return text.replace(mark * 2, mark)
    return dollars if dollars is not None else bare
