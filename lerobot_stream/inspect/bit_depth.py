"""Bits of a video's pictures, by the decoder's set-up in its movie box."""

from __future__ import annotations

_AVC_HIGH_PROFILES = (100, 110, 122, 244, 44, 83, 86, 118, 128)


def bits_per_value(stsd_body: bytes) -> int | None:
    """Read how many bits a value has.

    Args:
        stsd_body: The sample descriptions, as :class:`~lerobot_stream.mp4.index.Movie` has them.

    Returns:
        8, 10, 12 or another number; None where the set-up does not say it.
    """
    for name, read in ((b"avcC", _avc), (b"hvcC", _hevc), (b"av1C", _av1), (b"vpcC", _vp9)):
        place = stsd_body.find(name)
        if place >= 0:
            try:
                return read(stsd_body[place + 4 :])
            except IndexError:
                return None
    return None


def _avc(config: bytes) -> int:
    """ISO/IEC 14496-15, 5.3.3.1.2: only high profiles have more than 8 bits."""
    if config[1] not in _AVC_HIGH_PROFILES:
        return 8
    place = 5
    for counted_in in (31, 255):  # parameter sets of the sequence, then of the pictures
        count, place = config[place] & counted_in, place + 1
        for _ in range(count):
            place += 2 + int.from_bytes(config[place : place + 2])
    return 8 + (config[place + 1] & 7)  # behind the chroma format


def _hevc(config: bytes) -> int:
    """ISO/IEC 14496-15, 8.3.3.1.2."""
    return 8 + (config[17] & 7)


def _av1(config: bytes) -> int:
    """AV1 in ISOBMFF, 2.3.3."""
    high, twelve = config[2] & 0x40, config[2] & 0x20
    return (12 if twelve else 10) if high else 8


def _vp9(config: bytes) -> int:
    """VP codec ISO media file format binding: behind version, flags, profile and level."""
    return config[6] >> 4
