"""Whose frames are shown, and where a user's program is."""

from namoo.compat.private._names import names_of

__getattr__ = names_of(__name__, "namoo.extend.source_info_util")
