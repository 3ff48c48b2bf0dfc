"""Symbolic dimensions: sizes of arrays that are not known yet, as expressions of variables."""
