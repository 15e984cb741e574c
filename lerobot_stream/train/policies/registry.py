"""From ``--policy.type`` to the factory of that policy.

A package adds a policy with an entry point, in its ``pyproject.toml``::

    [project.entry-points."lerobot_stream.policies"]
    mine = "my_package.policy:make_policy"

``make_policy`` is a :data:`~lerobot_stream.train.policies.base.PolicyFactory`: it gets a
:class:`~lerobot_stream.train.policies.base.PolicyRequest`, whose ``config.options`` hold what
``--policy.options={…}`` said, and returns a
:class:`~lerobot_stream.train.policies.base.PolicySetup`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util

from lerobot_stream.train.policies.base import PolicyFactory, PolicyRequest, PolicySetup

GROUP = "lerobot_stream.policies"
"""Group of entry points in which packages register policies."""


def make_policy(request: PolicyRequest) -> PolicySetup:
    """Make the policy that ``request.config.type`` names.

    Args:
        request: What it is made from.

    Raises:
        ValueError: There is no such policy; those that there are are named.
        StreamError: The dataset or a checkpoint does not fit.
    """
    return find_factory(request.config.type)(request)


def find_factory(name: str) -> PolicyFactory:
    """Find the factory of a policy: built in, registered by a package, or LeRobot's.

    Args:
        name: The policy's type.

    Raises:
        ValueError: There is no such policy.
    """
    if name == "act":
        from lerobot_stream.train.policies.act_setup import make_act

        return make_act
    registered = importlib.metadata.entry_points(group=GROUP)
    if name in registered.names:
        factory: PolicyFactory = registered[name].load()
        return factory
    if importlib.util.find_spec("lerobot") is not None:
        from lerobot_stream.train.policies.lerobot_policy import lerobot_types, make_lerobot

        theirs = lerobot_types()
        if name in theirs:
            return make_lerobot
        more = f"; of LeRobot, {', '.join(theirs)}"
    else:
        more = "; LeRobot's own are there where the package lerobot is installed"
    there = ", ".join(sorted({"act", *registered.names}))
    raise ValueError(f"--policy.type={name} is unknown; there are {there}{more}")
