"""Meshes, partition specs and shardings: which part of an array is on which device."""
