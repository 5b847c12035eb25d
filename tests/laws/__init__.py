"""Laws: what holds for every conversation and for every capture, shown by property tests."""

import pytest

from tests.conftest import is_sample

Marks = tuple[pytest.MarkDecorator, ...]


def tier_of(name: str) -> Marks:
    """Give the marks of a capture on which a law is tried, by its name: a few belong to the quick tier.

    Such a law reads each capture at least twice, and changes it in between.
    """
    return () if is_sample(name, 60) else (pytest.mark.thorough,)
