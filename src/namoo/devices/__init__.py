"""Devices: shardings, placement of arrays and programs, meshes, several processes."""
