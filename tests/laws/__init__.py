"""Laws: what holds for every conversation and for every capture, shown by property tests."""

import os

import pytest

from tests.conftest import is_sample

Marks = tuple[pytest.MarkDecorator, ...]
ON_ALL: Marks = (
    pytest.mark.thorough,
    pytest.mark.skipif(
        "CONCHART_LAWS" not in os.environ, reason="CONCHART_LAWS=all reads every capture: an hour, with known failures"
    ),
)
"""Marks of the captures on which a law is tried only when somebody asks for it."""


def tier_of(name: str, *, tried: bool) -> Marks:
    """Give the marks of a capture by its name: where a law is tried, a few captures belong to the quick tier.

    Such a law reads each capture at least twice, and changes it in between.
    """
    if not tried:
        return ON_ALL
    return () if is_sample(name, 60) else (pytest.mark.thorough,)
