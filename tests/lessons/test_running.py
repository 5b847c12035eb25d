"""What looks for leftovers of a lab sees them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.lessons.running import left_behind


def test_a_file_and_a_process_that_a_lab_left_are_named(tmp_path: Path) -> None:
    lab = subprocess.Popen(
        ["sh", "-c", "sleep 60 >&2 & echo $!"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    output, _ = lab.communicate()
    sleeper = int(output)
    try:
        (tmp_path / "keys").touch()
        assert left_behind(lab.pid, tmp_path) == [str(tmp_path / "keys"), f"process {sleeper}"]
    finally:
        subprocess.run(["kill", str(sleeper)], check=True)


def test_of_a_lab_that_cleaned_up_nothing_is_named(tmp_path: Path) -> None:
    lab = subprocess.Popen(["true"], start_new_session=True)
    lab.wait()
    assert left_behind(lab.pid, tmp_path) == []
