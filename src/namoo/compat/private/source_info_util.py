"""Source locations of the user's program."""

from namoo.compat.private._names import names_of

__getattr__ = names_of(__name__, "namoo.extend.source_info_util")
