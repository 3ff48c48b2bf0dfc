"""Compiled programs: identity, and storage in the process and on disk."""
