"""Loading torchcodec, which fails in two well-known ways, each with a cure."""

from __future__ import annotations

import ctypes.util
from importlib import metadata
from typing import TYPE_CHECKING

from lerobot_stream.errors import DecodeError

if TYPE_CHECKING:
    from torchcodec.decoders import VideoDecoder

_FFMPEG_HINT = (
    "install FFmpeg's shared libraries: apt-get install ffmpeg (Debian, Ubuntu), "
    "brew install ffmpeg (macOS) or conda install -c conda-forge 'ffmpeg<9'"
)
_BUILD_HINT = (
    "install a torchcodec made for a CPU torch (pip install 'torchcodec<0.14'), "
    "or a CUDA build of torch"
)


def load_video_decoder() -> type[VideoDecoder]:
    """Import torchcodec's decoder.

    Returns:
        The class that decodes a video.

    Raises:
        DecodeError: torchcodec, FFmpeg or torch do not fit together; the hint is the cure.
    """
    try:
        from torchcodec.decoders import VideoDecoder
    except (ImportError, OSError, RuntimeError) as error:
        raise _explained(error) from error
    return VideoDecoder


def _explained(error: Exception) -> DecodeError:
    try:
        version = metadata.version("torchcodec")
    except metadata.PackageNotFoundError:
        return DecodeError("torchcodec is not installed", hint="pip install torchcodec")
    return explain_failure(
        torchcodec_version=version,
        torch_cuda=_torch_cuda(),
        has_ffmpeg=ctypes.util.find_library("avcodec") is not None,
        reason=next(iter(str(error).strip().splitlines()), type(error).__name__),
    )


def _torch_cuda() -> str | None:
    import torch

    return torch.version.cuda


def explain_failure(
    *, torchcodec_version: str, torch_cuda: str | None, has_ffmpeg: bool, reason: str
) -> DecodeError:
    """Say why torchcodec could not be loaded.

    Args:
        torchcodec_version: The release that is installed.
        torch_cuda: The CUDA version that torch was built for, None for a CPU build.
        has_ffmpeg: Whether the system's loader finds ``libavcodec``.
        reason: The first line of the failure, for when nothing else explains it.

    Returns:
        The error to raise.
    """
    named = f"torchcodec {torchcodec_version} cannot be loaded"
    cuda_build = _release(torchcodec_version) >= (0, 14) and "+cpu" not in torchcodec_version
    if torch_cuda is None and cuda_build:
        return DecodeError(f"{named}: it needs CUDA, torch is a CPU build", hint=_BUILD_HINT)
    if not has_ffmpeg:
        return DecodeError(f"{named}: FFmpeg's libavcodec is not there", hint=_FFMPEG_HINT)
    return DecodeError(f"{named}: {reason.rstrip('.')}", hint=f"{_BUILD_HINT}; {_FFMPEG_HINT}")


def _release(version: str) -> tuple[int, int]:
    major, minor = (*version.split("."), "0")[:2]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)
