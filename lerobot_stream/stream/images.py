"""Pictures that a dataset keeps inside its Parquet rows."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from lerobot_stream.errors import DecodeError

_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")
"""What is decoded; among the rest are formats for which Pillow starts other programs."""


def decode_image(data: bytes, *, place: str) -> NDArray[np.uint8]:
    """Decode one picture as LeRobot does.

    Args:
        data: The encoded file, e.g. PNG or JPEG.
        place: Episode, feature and frame, for messages.

    Returns:
        ``(H, W, C)``; ``C`` is 1 for greyscale, else 3.

    Raises:
        DecodeError: The bytes are no picture, or one of more than 8 bits a channel.
    """
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.mode.startswith(("I", "F")):
                raise DecodeError(
                    f"pictures of mode {image.mode} (depth?) are not supported", where=place
                )
            picture = np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    except UnidentifiedImageError as error:
        message = f"wanted {', '.join(_FORMATS)}, found {len(data)} bytes that start with"
        raise DecodeError(f"{message} {data[:8]!r}", where=place) from error
    except DecodeError:
        raise
    except Exception as error:  # Pillow's decoders raise what they stumble over
        raise DecodeError(f"no readable picture ({error})", where=place) from error
    return picture[..., None] if picture.ndim == 2 else picture
