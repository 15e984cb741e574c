"""The network of ACT: from pictures, state and a latent to a chunk of actions."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from lerobot_stream.train.features import ACTION, ENVIRONMENT, STATE, PolicyFeatures
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.policies.act_layers import (
    Decoder,
    Encoder,
    sine_positions,
    sine_positions_2d,
)
from lerobot_stream.train.policies.resnet import ResNet


class ActModel(nn.Module):
    """An encoder of what is seen, a decoder of actions, and in training an encoder of style.

    Inputs are normalised. Names of parameters are those of LeRobot's ACT.
    """

    def __init__(self, config: ActConfig, features: PolicyFeatures) -> None:
        """Make a network with random weights.

        Args:
            config: Its sizes.
            features: What it sees and predicts.
        """
        super().__init__()
        self.config = config
        self.cameras = features.cameras
        width = config.dim_model
        sizes = {key: one.shape[0] for key, one in features.everything().items()}
        self.has_state, self.has_environment = STATE in sizes, ENVIRONMENT in sizes
        if config.use_vae:
            self.vae_encoder = Encoder(config, config.n_vae_encoder_layers)
            self.vae_encoder_cls_embed = nn.Embedding(1, width)
            if self.has_state:
                self.vae_encoder_robot_state_input_proj = nn.Linear(sizes[STATE], width)
            self.vae_encoder_action_input_proj = nn.Linear(sizes[ACTION], width)
            self.vae_encoder_latent_output_proj = nn.Linear(width, config.latent_dim * 2)
            tokens = 1 + self.has_state + config.chunk_size
            self.vae_encoder_pos_enc: Tensor
            self.register_buffer("vae_encoder_pos_enc", sine_positions(tokens, width)[None])
        if self.cameras:
            dilate = config.replace_final_stride_with_dilation
            self.backbone = ResNet(config.vision_backbone, dilate_last=dilate)
        self.encoder = Encoder(config, config.n_encoder_layers)
        self.decoder = Decoder(config)
        if self.has_state:
            self.encoder_robot_state_input_proj = nn.Linear(sizes[STATE], width)
        if self.has_environment:
            self.encoder_env_state_input_proj = nn.Linear(sizes[ENVIRONMENT], width)
        self.encoder_latent_input_proj = nn.Linear(config.latent_dim, width)
        if self.cameras:
            self.encoder_img_feat_input_proj = nn.Conv2d(ResNet.channels, width, 1)
        self.encoder_1d_feature_pos_embed = nn.Embedding(
            1 + self.has_state + self.has_environment, width
        )
        self.decoder_pos_embed = nn.Embedding(config.chunk_size, width)
        self.action_head = nn.Linear(width, sizes[ACTION])
        for parameter in (*self.encoder.parameters(), *self.decoder.parameters()):
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        if self.cameras:  # as pictures come from the decoder, and as GPUs compute fastest
            for parameter in (
                *self.backbone.parameters(),
                *self.encoder_img_feat_input_proj.parameters(),
            ):
                if parameter.dim() == 4:
                    memory = torch.empty_like(parameter.data, memory_format=torch.channels_last)
                    parameter.data = memory.copy_(parameter.data)

    def encode_style(self, batch: Mapping[str, Tensor], is_pad: Tensor) -> tuple[Tensor, Tensor]:
        """Describe recorded actions by a normal distribution of the latent.

        Args:
            batch: ``action`` ``(B, T, D)`` and, where there is one, the state.
            is_pad: ``(B, T)`` True for steps behind the episode's end.

        Returns:
            Mean and logarithm of the variance, ``(B, L)`` each.
        """
        actions = batch[ACTION]
        size = len(actions)
        tokens = [self.vae_encoder_cls_embed.weight.expand(size, 1, -1)]
        if self.has_state:
            tokens.append(self.vae_encoder_robot_state_input_proj(batch[STATE])[:, None])
        never = is_pad.new_zeros(size, len(tokens))
        tokens.append(self.vae_encoder_action_input_proj(actions))
        x = torch.cat(tokens, dim=1).transpose(0, 1)  # (S, B, D)
        position = self.vae_encoder_pos_enc.transpose(0, 1)
        summary = self.vae_encoder(x, position, torch.cat([never, is_pad], dim=1))[0]
        mean, log_variance = self.vae_encoder_latent_output_proj(summary).chunk(2, dim=1)
        return mean, log_variance

    def forward(self, batch: Mapping[str, Tensor], latent: Tensor) -> Tensor:
        """Predict actions.

        Args:
            batch: The inputs: pictures ``(B, C, H, W)``, states ``(B, D)``.
            latent: ``(B, L)`` The style to act in.

        Returns:
            ``(B, T, D)`` Normalised actions.
        """
        tokens = [self.encoder_latent_input_proj(latent)[None]]
        if self.has_state:
            tokens.append(self.encoder_robot_state_input_proj(batch[STATE])[None])
        if self.has_environment:
            tokens.append(self.encoder_env_state_input_proj(batch[ENVIRONMENT])[None])
        positions = [self.encoder_1d_feature_pos_embed.weight[:, None]]
        for camera in self.cameras:
            picture = batch[camera].contiguous(memory_format=torch.channels_last)
            seen = self.encoder_img_feat_input_proj(self.backbone(picture))
            height, width = seen.shape[2:]
            place = sine_positions_2d(height, width, seen.shape[1], device=seen.device)
            tokens.append(seen.flatten(2).permute(2, 0, 1))
            positions.append(place.flatten(2).permute(2, 0, 1))
        places = torch.cat(positions)
        memory = self.encoder(torch.cat(tokens), places)
        position = self.decoder_pos_embed.weight[:, None]
        start = memory.new_zeros(len(position), len(latent), memory.shape[2])
        acted = self.decoder(start, position, memory, places)
        actions: Tensor = self.action_head(acted.transpose(0, 1))
        return actions
