"""The two prisms of Wu et al. 2022: networks, attention, fusion of what raters said, losses."""

from annotruth.nn.prism.fusion import RULES, SLIPS, Rule, confidences, decided, fuse, opinions, said, shares
from annotruth.nn.prism.losses import mask_loss, multi_head_loss, shuffle_loss, ssim_loss
from annotruth.nn.prism.networks import INTEGRATIONS, PATCH, ConP, DivP, PrismEncoder, padded, patched, unpatched

__all__ = [
    "INTEGRATIONS",
    "PATCH",
    "RULES",
    "SLIPS",
    "ConP",
    "DivP",
    "PrismEncoder",
    "Rule",
    "confidences",
    "decided",
    "fuse",
    "mask_loss",
    "multi_head_loss",
    "opinions",
    "padded",
    "patched",
    "said",
    "shares",
    "shuffle_loss",
    "ssim_loss",
    "unpatched",
]
