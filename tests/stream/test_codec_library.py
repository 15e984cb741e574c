"""A torchcodec that cannot be loaded is explained by what is wrong, with its cure."""

from __future__ import annotations

import pytest

from lerobot_stream.stream.codec_library import explain_failure, load_video_decoder


def test_an_installed_torchcodec_gives_its_decoder() -> None:
    assert load_video_decoder().__name__ == "VideoDecoder"


@pytest.mark.parametrize(
    ("version", "cuda", "ffmpeg", "message", "cures"),
    [
        pytest.param(
            "0.17.0", None, True, "it needs CUDA", ["'torchcodec<0.14'", "a CUDA build of torch"],
            id="cuda build beside a CPU torch",
        ),
        pytest.param(
            "0.13.0", None, False, "libavcodec is not there", ["apt-get", "brew", "conda"],
            id="no FFmpeg",
        ),
        pytest.param(
            "0.17.0", "13.0", False, "libavcodec is not there", ["apt-get"],
            id="no FFmpeg beside a CUDA torch",
        ),
        pytest.param(
            "0.13.0", None, True, "undefined symbol", ["torchcodec<0.14", "ffmpeg"],
            id="anything else keeps the reason",
        ),
    ],
)  # fmt: skip
def test_the_failure_is_named_with_its_cure(
    version: str, cuda: str | None, ffmpeg: bool, message: str, cures: list[str]
) -> None:
    error = explain_failure(
        torchcodec_version=version, torch_cuda=cuda, has_ffmpeg=ffmpeg, reason="undefined symbol."
    )
    assert message in str(error)
    assert version in str(error)
    assert error.hint is not None
    assert all(cure in error.hint for cure in cures)
