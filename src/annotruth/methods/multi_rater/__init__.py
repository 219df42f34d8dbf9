"""Masks of several raters: how far to trust each, and distributions of masks."""
