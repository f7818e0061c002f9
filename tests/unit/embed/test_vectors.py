"""Nothing but n finite unit vectors of one length passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kb_resources.embed.vectors import check_texts, check_vectors, to_unit
from kb_resources.errors import InputError, IntegrityError

UNIT = [[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]

BAD: dict[str, Any] = {
    "short": UNIT[:1],
    "long": [*UNIT, UNIT[0]],
    "ragged": [[0.6, 0.8, 0.0], [1.0]],
    "wrong dimension": [[0.6, 0.8], [0.0, 1.0]],
    "flat": [1.0, 0.0],
    "empty": [],
    "empty vectors": [[], []],
    "NaN": [[0.6, 0.8, 0.0], [float("nan"), 0.0, 1.0]],
    "infinite": [[0.6, 0.8, 0.0], [float("inf"), 0.0, 1.0]],
    "zero": [[0.6, 0.8, 0.0], [0.0, 0.0, 0.0]],
    "text": [["a", "b", "c"], ["d", "e", "f"]],
    "numbers as text": [["0.6", "0.8", "0"], ["0", "0", "1"]],
    "null": [[None, None, 1.0], [0.0, 0.0, 1.0]],
    "booleans": [[True, False, False], [False, False, True]],
    "nested": [[[1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]]],
}


@pytest.mark.requirement("B-17")
@pytest.mark.parametrize("case", BAD)
def test_a_wrong_answer_is_refused(case: str) -> None:
    with pytest.raises(IntegrityError):
        check_vectors(to_unit(BAD[case], source="x"), count=2, dimensions=3, source="x")
    with pytest.raises(IntegrityError):
        check_vectors(BAD[case], count=2, dimensions=3, source="x")


def test_a_vector_that_is_not_of_unit_length_is_refused() -> None:
    with pytest.raises(IntegrityError):
        check_vectors([[0.6, 0.8, 0.0], [0.0, 0.0, 1.01]], count=2, dimensions=3, source="x")


def test_a_number_too_large_for_float32_is_refused() -> None:
    with pytest.raises(IntegrityError):
        to_unit([[1e300, 0.0, 0.0]], source="x")


def test_rows_of_any_length_but_zero_are_scaled() -> None:
    unit = to_unit([[3.0, 4.0], [1e-6, 0.0], [2e19, 2e19]], source="x")
    np.testing.assert_allclose(unit, [[0.6, 0.8], [1, 0], [0.5**0.5, 0.5**0.5]], rtol=1e-6)


def test_good_vectors_pass_unchanged() -> None:
    checked = check_vectors(UNIT, count=2, dimensions=3, source="x")
    assert checked.dtype == np.float32
    np.testing.assert_array_equal(checked, np.array(UNIT, np.float32))


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u2003"])
def test_blank_texts_are_refused(blank: str) -> None:
    with pytest.raises(InputError, match="Text 1 of 2"):
        check_texts(["word", blank])
