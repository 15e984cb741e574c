from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lerobot_stream.train.features import PolicyFeature, PolicyFeatures
from lerobot_stream.train.policies.act import ActPolicy
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.policies.act_layers import sine_positions, sine_positions_2d
from tests.train.tiny import CAMERA, FEATURES, TINY_ACT, make_batch

SHAPES = Path(__file__).parents[3] / "../shared/interop/lerobot_act/state_dict_shapes.json"


@pytest.mark.skipif(not SHAPES.exists(), reason="no ../shared")
def test_names_and_shapes_are_those_of_lerobot() -> None:
    picture = PolicyFeature("VISUAL", (3, 96, 128))
    features = PolicyFeatures(
        inputs={
            "observation.state": PolicyFeature("STATE", (6,)),
            "observation.images.top": picture,
            "observation.images.wrist": picture,
        },
        outputs={"action": PolicyFeature("ACTION", (7,))},
    )
    found = {
        key: list(one.shape) for key, one in ActPolicy(ActConfig(), features).state_dict().items()
    }
    assert found == json.loads(SHAPES.read_text())


def test_shapes_follow_the_settings() -> None:
    config = replace(TINY_ACT, dim_model=16, latent_dim=5, chunk_size=7, n_action_steps=7)
    shapes = {
        key: tuple(one.shape) for key, one in ActPolicy(config, FEATURES).state_dict().items()
    }
    assert shapes["model.vae_encoder_pos_enc"] == (1, 9, 16)  # summary, state, 7 actions
    assert shapes["model.vae_encoder_latent_output_proj.weight"] == (10, 16)
    assert shapes["model.encoder_1d_feature_pos_embed.weight"] == (2, 16)
    assert shapes["model.encoder_img_feat_input_proj.weight"] == (16, 512, 1, 1)
    assert shapes["model.decoder_pos_embed.weight"] == (7, 16)
    assert shapes["model.action_head.weight"] == (2, 16)
    assert shapes["model.encoder.layers.0.self_attn.in_proj_weight"] == (48, 16)
    assert not any("encoder.norm" in key for key in shapes)


def test_pre_norm_ends_the_encoder_with_a_norm() -> None:
    policy = ActPolicy(replace(TINY_ACT, pre_norm=True), FEATURES)
    assert "model.encoder.norm.weight" in policy.state_dict()
    assert policy.predict_action_chunk(make_batch()).shape == (4, 4, 2)


@pytest.mark.parametrize(
    "inputs",
    [
        {"observation.state": PolicyFeature("STATE", (3,))},
        {CAMERA: PolicyFeature("VISUAL", (3, 32, 48))},
        {"observation.environment_state": PolicyFeature("ENV", (5,))},
    ],
    ids=["state", "camera", "environment"],
)
def test_any_kind_of_input_is_enough(inputs: dict[str, PolicyFeature]) -> None:
    policy = ActPolicy(TINY_ACT, PolicyFeatures(inputs, FEATURES.outputs))
    batch = make_batch() | {"observation.environment_state": torch.randn(4, 5)}
    loss, _ = policy(batch)
    loss.backward()
    assert all(p.grad is not None for p in policy.parameters())
    assert policy.predict_action_chunk(batch).shape == (4, 4, 2)


def test_the_loss_is_the_mean_over_unmasked_steps() -> None:
    policy = ActPolicy(replace(TINY_ACT, use_vae=False, dropout=0.0), FEATURES)
    batch = make_batch(6)
    loss, metrics = policy(batch)
    predicted = policy.predict_action_chunk(batch)
    errors = [
        abs(float(predicted[row, step, number] - batch["action"][row, step, number]))
        for row in range(6)
        for step in range(4)
        for number in range(2)
        if not batch["action_is_pad"][row, step]
    ]
    assert float(loss.detach()) == pytest.approx(sum(errors) / len(errors), rel=1e-5)
    assert metrics.keys() == {"l1_loss"}


def test_losses_of_parts_average_to_the_loss_of_the_whole() -> None:
    policy = ActPolicy(replace(TINY_ACT, use_vae=False, dropout=0.0), FEATURES)
    batch = make_batch(6)
    parts = [{key: value[rows] for key, value in batch.items()} for rows in (slice(4), slice(4, 6))]
    count = (~batch["action_is_pad"]).sum() / 2
    halves = [policy(part, count)[0] for part in parts]
    torch.testing.assert_close((halves[0] + halves[1]) / 2, policy(batch)[0])


def test_padded_actions_change_nothing() -> None:
    policy = ActPolicy(replace(TINY_ACT, dropout=0.0), FEATURES)
    batch = make_batch()
    other = batch | {"action": batch["action"].masked_fill(batch["action_is_pad"][..., None], 9e3)}
    losses = []
    for each in (batch, other):
        torch.manual_seed(0)
        losses.append(float(policy(each)[0].detach()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_batch_of_padding_alone_has_a_finite_loss() -> None:
    policy = ActPolicy(replace(TINY_ACT, use_vae=False), FEATURES)
    batch = make_batch()
    batch["action_is_pad"] = torch.ones_like(batch["action_is_pad"])
    assert float(policy(batch)[0].detach()) == 0


def test_the_divergence_is_that_of_two_normal_distributions() -> None:
    policy = ActPolicy(replace(TINY_ACT, dropout=0.0), FEATURES)
    batch = make_batch()
    with torch.no_grad():
        mean, log_variance = policy.model.encode_style(batch, batch["action_is_pad"])
        style = torch.distributions.Normal(mean, (log_variance / 2).exp())
        prior = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
        wanted = torch.distributions.kl_divergence(style, prior).sum(dim=1).mean()
        loss, metrics = policy(batch)
    torch.testing.assert_close(metrics["kld_loss"], wanted)
    torch.testing.assert_close(loss, metrics["l1_loss"] + 10 * wanted)


def test_it_learns_one_batch_by_heart() -> None:
    torch.manual_seed(0)
    policy = ActPolicy(replace(TINY_ACT, dropout=0.0), FEATURES)
    optimizer = torch.optim.AdamW(policy.param_groups())
    batch, losses = make_batch(), []
    for _ in range(40):
        loss, metrics = policy(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(metrics["l1_loss"]))
    assert min(losses[-5:]) < 0.7 * losses[0]


def test_the_backbone_has_a_rate_of_its_own() -> None:
    policy = ActPolicy(TINY_ACT, FEATURES)
    rest, backbone = policy.param_groups()
    assert (rest["lr"], backbone["lr"]) == (1e-3, 1e-4)
    assert {id(p) for p in backbone["params"]} == {
        id(p) for p in policy.model.backbone.parameters()
    }
    assert len(rest["params"]) + len(backbone["params"]) == len(list(policy.parameters()))


def test_predicting_leaves_the_mode_and_the_generators_alone() -> None:
    policy = ActPolicy(TINY_ACT, FEATURES).train()
    before = torch.get_rng_state()
    first = policy.predict_action_chunk(make_batch())
    assert policy.training
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, policy.predict_action_chunk(make_batch()))


def test_actions_come_one_by_one_from_a_prediction() -> None:
    policy = ActPolicy(replace(TINY_ACT, n_action_steps=2), FEATURES)
    batch = make_batch()
    predicted = policy.predict_action_chunk(batch)
    other = make_batch(seed=1)
    taken = [policy.select_action(each) for each in (batch, other, other)]
    assert torch.equal(taken[0], predicted[:, 0])
    assert torch.equal(taken[1], predicted[:, 1])
    assert torch.equal(taken[2], policy.predict_action_chunk(other)[:, 0])


def test_positions_are_sines_of_falling_rate() -> None:
    table = sine_positions(5, 8)
    for place in range(5):
        for j in range(4):
            angle = torch.tensor(place / 10_000 ** (2 * j / 8), dtype=torch.float64)
            assert float(table[place, 2 * j]) == pytest.approx(float(angle.sin()), abs=1e-6)
            assert float(table[place, 2 * j + 1]) == pytest.approx(float(angle.cos()), abs=1e-6)


def test_picture_positions_tell_rows_first_then_columns() -> None:
    table = sine_positions_2d(3, 4, 8, device=torch.device("cpu"))
    assert table.shape == (1, 8, 3, 4)
    assert torch.equal(table[:, :4, :, 0], table[:, :4, :, 3])
    assert torch.equal(table[:, 4:, 0], table[:, 4:, 2])
    assert len({tuple(place.tolist()) for place in table[0].flatten(1).T}) == 12
