"""Engines compile and run programs.  They know programs and arrays, not how programs are made."""
