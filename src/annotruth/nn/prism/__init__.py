"""The two prisms of Wu et al. 2022: networks, attention, fusion of what raters said, losses."""

from annotruth.nn.prism.fusion import RULES, SLIPS, Rule, confidences, decided, fuse, opinions, said, shares
from annotruth.nn.prism.losses import mask_loss, multi_head_loss, shuffle_loss, ssim_loss
from annotruth.nn.prism.networks import INTEGRATIONS, PATCH, ConP, DivP, patched, unpatched, whole_patches

__all__ = [
    "INTEGRATIONS",
    "PATCH",
    "RULES",
    "SLIPS",
    "ConP",
    "DivP",
    "Rule",
    "confidences",
    "decided",
    "fuse",
    "mask_loss",
    "multi_head_loss",
    "opinions",
    "patched",
    "said",
    "shares",
    "shuffle_loss",
    "ssim_loss",
    "unpatched",
    "whole_patches",
]
