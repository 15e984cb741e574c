from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.dataset.template import check_template, fill_template, template_pattern
from lerobot_stream.errors import StreamError

FIELDS = {"chunk_index": int, "file_index": int}


@given(st.text(alphabet="abc{}:!.0d[]_chunkfileindex", max_size=40))
def test_any_text_is_filled_or_refused(template: str) -> None:
    try:
        checked = check_template(template, name="data_path", fields=FIELDS)
        path = fill_template(checked, name="data_path", chunk_index=3, file_index=4)
    except StreamError:
        return
    assert len(path) < 2 * len(template) + 200


@pytest.mark.parametrize("template", ["{chunk_index:03d}/{file_index}", "a.b/{file_index:06d}"])
@pytest.mark.parametrize(("chunk", "file"), [(0, 0), (12, 345678)])
def test_the_pattern_takes_what_the_template_gives(template: str, chunk: int, file: int) -> None:
    path = fill_template(template, name="data_path", chunk_index=chunk, file_index=file)
    pattern = template_pattern(template)
    assert pattern.fullmatch(path)
    assert not pattern.fullmatch(path + "x")
    assert not pattern.fullmatch(path.replace(".", "-") + "y")


def test_doubled_braces_stand_for_one() -> None:
    template = check_template("a{{b}}/{file_index}", name="data_path", fields=FIELDS)
    assert fill_template(template, name="data_path", file_index=1) == "a{b}/1"
    assert template_pattern(template).fullmatch("a{b}/1")
