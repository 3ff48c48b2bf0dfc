from namoo.extend import backend as backend
from namoo.extend import core as core
from namoo.extend import ifrt_programs as ifrt_programs
from namoo.extend import linear_util as linear_util
from namoo.extend import source_info_util as source_info_util

_TABLE: dict[str, str]
