"""Coarse drawings, strokes and boxes."""
