"""The truth without images: label fusion for masks and for answers."""

from __future__ import annotations
