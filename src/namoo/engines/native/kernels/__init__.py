"""Kinds of kernels: each file describes its values to the emitter and generates its own loops."""
