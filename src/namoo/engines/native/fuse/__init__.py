"""Fusion: which values are stored, which loops compute them, and in which order."""
