"""Laws: what holds for every conversation and for every capture, shown by property tests."""

import os

import pytest

ON_ALL = (
    pytest.mark.thorough,
    pytest.mark.skipif(
        "CONCHART_LAWS" not in os.environ, reason="CONCHART_LAWS=all reads every capture: an hour, with known failures"
    ),
)
"""Marks of the captures on which a law is tried only when somebody asks for it."""
