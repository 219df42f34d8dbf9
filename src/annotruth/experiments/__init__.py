"""Experiments: the demo, and the papers' tables."""
