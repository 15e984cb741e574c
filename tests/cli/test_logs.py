"""What the library logs reaches people as lines on stderr."""

from __future__ import annotations

import logging

import pytest

from lerobot_stream.cli.logs import shown_logs

logger = logging.getLogger("lerobot_stream.somewhere")


def test_a_warning_says_so_and_news_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_logs():
        logger.info("v3.0 is %s", "0123")
        logger.warning("odd")
        logger.debug("a request")
    captured = capsys.readouterr()
    assert captured.err == "v3.0 is 0123\nwarning: odd\n"
    assert captured.out == ""


def test_nothing_is_shown_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_logs():
        pass
    logger.info("later")
    assert capsys.readouterr().err == ""
    assert logging.getLogger("lerobot_stream").level == logging.NOTSET
