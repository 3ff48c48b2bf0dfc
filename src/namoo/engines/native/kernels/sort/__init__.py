"""Sorting, and the greatest elements of rows."""
