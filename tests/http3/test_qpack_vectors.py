"""The vectors that the core's tests of QPACK read are those that ls-qpack makes."""

import pytest


def test_the_vectors_are_what_ls_qpack_makes() -> None:
    pytest.importorskip("pylsqpack")
    from tests.http3 import qpack_vectors

    assert qpack_vectors.WRITTEN.read_text() == qpack_vectors.vectors()
