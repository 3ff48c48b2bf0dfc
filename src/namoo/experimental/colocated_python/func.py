"""Importable only: see `namoo.experimental.colocated_python`."""
