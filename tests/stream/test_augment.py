from __future__ import annotations

import colorsys
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor

from lerobot_stream.stream.augment import Augment, grey, move

ALL: list[tuple[float, Mapping[str, tuple[float, float]]]] = [
    (1.0, {"brightness": (0.8, 1.2)}),
    (1.0, {"contrast": (0.8, 1.2)}),
    (1.0, {"saturation": (0.5, 1.5)}),
    (1.0, {"hue": (-0.05, 0.05)}),
    (1.0, {"sharpness": (0.5, 1.5)}),
    (1.0, {"degrees": (-5.0, 5.0), "translate": (0.05, 0.05)}),
]


def pictures(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator)


def only(**ranges: float) -> Augment:
    """One change of one fixed strength."""
    fixed = {name: (value, value) for name, value in ranges.items()}
    return Augment([(1.0, fixed)], max_num_transforms=1, random_order=False)


@pytest.mark.parametrize("shape", [(3, 8, 10), (4, 3, 8, 10)], ids=["one step", "window"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_shape_and_type_stay(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    frames = pictures(*shape)
    frames = (frames * 255).to(torch.uint8) if dtype == torch.uint8 else frames
    before = frames.clone()
    changed = Augment(ALL, max_num_transforms=6, random_order=True)(frames)
    assert changed.shape == frames.shape
    assert changed.dtype == dtype
    assert changed.min() >= 0
    assert changed.max() <= (255 if dtype == torch.uint8 else 1)
    assert not torch.equal(changed, frames)
    assert torch.equal(frames, before)


@pytest.mark.parametrize("random_order", [True, False])
def test_equal_seeds_make_equal_pictures(random_order: bool) -> None:
    augment = Augment(ALL, max_num_transforms=3, random_order=random_order)
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append(augment(pictures(3, 8, 10)))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def test_all_steps_of_a_window_change_alike() -> None:
    window = pictures(3, 8, 10).expand(5, 3, 8, 10)
    changed = Augment(ALL, max_num_transforms=6, random_order=False)(window)
    for step in changed:
        assert torch.equal(step, changed[0])


@pytest.mark.parametrize(
    "neutral",
    [
        {"brightness": 1.0},
        {"contrast": 1.0},
        {"saturation": 1.0},
        {"hue": 0.0},
        {"sharpness": 1.0},
        {"degrees": 0.0, "translate": 0.0, "scale": 1.0},
    ],
    ids=lambda neutral: next(iter(neutral)),
)
def test_neutral_strengths_change_nothing(neutral: dict[str, float]) -> None:
    frames = pictures(3, 8, 10)
    torch.testing.assert_close(only(**neutral)(frames), frames, rtol=0, atol=1e-5)


@pytest.mark.parametrize("turns", [-0.5, -0.1, 0.3, 0.5])
def test_hue_turns_colours_in_the_hexagonal_model(turns: float) -> None:
    frames = pictures(3, 6, 7)
    frames[:, 0, 0] = 0.4  # grey has no hue
    frames[:, 0, 1] = torch.tensor([1.0, 0.0, 0.0])
    changed = only(hue=turns)(frames)
    for y in range(6):
        for x in range(7):
            hue, saturation, value = colorsys.rgb_to_hsv(*frames[:, y, x].tolist())
            wanted = colorsys.hsv_to_rgb((hue + turns) % 1, saturation, value)
            assert changed[:, y, x].tolist() == pytest.approx(wanted, abs=1e-5)


def test_brightness_multiplies_and_saturates() -> None:
    torch.testing.assert_close(
        only(brightness=1.5)(pictures(3, 4, 4)), (pictures(3, 4, 4) * 1.5).clamp(max=1)
    )


def test_no_contrast_leaves_the_mean_brightness() -> None:
    frames = pictures(2, 3, 4, 5)
    flat = only(contrast=0.0)(frames)
    for changed, frame in zip(flat, frames, strict=True):
        assert float(changed.std()) < 1e-6
        assert float(changed.mean()) == pytest.approx(float(grey(frame[None]).mean()), abs=1e-5)


def test_no_saturation_leaves_grey() -> None:
    changed = only(saturation=0.0)(pictures(3, 4, 5))
    torch.testing.assert_close(changed, grey(pictures(1, 3, 4, 5))[0].expand(3, 4, 5))


def test_no_sharpness_smooths_all_but_the_border() -> None:
    frame = torch.zeros(3, 5, 5)
    frame[:, 2, 2] = 1
    changed = only(sharpness=0.0)(frame)
    assert changed[0, 2, 2].item() == pytest.approx(5 / 13)
    assert changed[0, 1, 1].item() == pytest.approx(1 / 13)
    assert torch.equal(changed[:, 0], frame[:, 0])


def test_shifting_moves_whole_pixels_and_brings_in_black() -> None:
    frames = pictures(1, 3, 6, 8)
    changed = move(frames, degrees=0, scale=1, right=2, down=1)
    torch.testing.assert_close(changed[:, :, 1:, 2:], frames[:, :, :-1, :-2], rtol=0, atol=1e-4)
    assert changed[:, :, 0].max() < 1e-4
    assert changed[:, :, :, :2].max() < 1e-4


def test_a_quarter_turn_is_clockwise() -> None:
    frames = pictures(1, 3, 5, 5)
    changed = move(frames, degrees=90, scale=1, right=0, down=0)
    wanted = torch.rot90(frames, k=-1, dims=(2, 3))
    torch.testing.assert_close(changed, wanted, rtol=0, atol=1e-4)


def test_turning_keeps_angles_in_wide_pictures() -> None:
    frames = torch.zeros(1, 1, 41, 81)
    frames[:, :, 18:23, 55:60] = 1  # 17 pixels right of the middle
    changed = move(frames, degrees=90, scale=1, right=0, down=0)[0, 0].numpy()
    y, x = np.nonzero(changed > 0.5)
    assert (y.mean(), x.mean()) == pytest.approx((20 + 17, 40), abs=0.2)


def test_scale_enlarges() -> None:
    frames = torch.zeros(1, 1, 41, 41)
    frames[:, :, 18:23, 18:23] = 1
    area = move(frames, degrees=0, scale=2, right=0, down=0).sum().item()
    assert area == pytest.approx(4 * 25, rel=0.1)


def test_changes_without_weight_are_never_made() -> None:
    augment = Augment([(0.0, {"brightness": (0.0, 0.0)})], max_num_transforms=3, random_order=False)
    assert torch.equal(augment(pictures(3, 4, 4)), pictures(3, 4, 4))


def test_an_unknown_change_is_named() -> None:
    with pytest.raises(ValueError, match="no picture change is called blur"):
        Augment([(1.0, {"blur": (0.0, 1.0)})], max_num_transforms=1, random_order=False)
