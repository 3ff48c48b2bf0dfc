"""Transcendental functions, as vector code."""
