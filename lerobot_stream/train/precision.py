"""Half precision where it is asked for and safe."""

from __future__ import annotations

import torch


class Precision:
    """How a run computes: the number type inside, and the scale of gradients."""

    def __init__(self, device: torch.device, *, use_amp: bool) -> None:
        """Choose for a device.

        bfloat16 needs no scaling; GPUs without it take float16 with scaled losses.

        Args:
            device: Where the policy computes.
            use_amp: Compute in half precision.
        """
        self._device = device.type
        self._enabled = use_amp
        self._dtype = torch.bfloat16
        if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
            self._dtype = torch.float16
        scales = use_amp and self._dtype is torch.float16
        self.scaler = torch.amp.GradScaler(self._device, enabled=scales)

    def autocast(self) -> torch.autocast:
        """The context to compute a loss in."""
        return torch.autocast(self._device, dtype=self._dtype, enabled=self._enabled)
