"""What every policy is configured with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lerobot_stream.train.settings import setting


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """Settings that do not depend on the kind of policy."""

    type: str = setting(
        "act",
        help="Kind of policy: act, one that a package registers, or one of LeRobot where it is "
        "installed.",
    )
    path: str | None = setting(
        None,
        help="Folder or Hub repository of a trained policy whose weights and settings the run "
        "starts from.",
    )
    device: str | None = setting(
        None, help="cpu, cuda or mps; the best that is there if not given."
    )
    use_amp: bool = setting(False, help="Compute in half precision where that is safe.")
    options: Mapping[str, Any] = field(
        default_factory=dict,
        metadata={"help": "Settings of a policy other than act, as a JSON object."},
    )
