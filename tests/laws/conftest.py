"""How hard the laws try: ``fast`` on every push, ``slow`` (HYPOTHESIS_PROFILE=slow) at night."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.laws.reading import Scratch

# A read makes a database: no example is quick, and their time varies with the machine.
settings.register_profile("fast", max_examples=40, deadline=None, derandomize=True)
settings.register_profile(
    "slow", max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Reads captures from bytes; one folder for all examples of a module."""
    folder: Path = tmp_path_factory.mktemp("laws")
    return Scratch(folder)
