from namoo.interpreters import ad as ad
from namoo.interpreters import batching as batching
from namoo.interpreters import mlir as mlir
from namoo.interpreters import partial_eval as partial_eval
from namoo.interpreters import pxla as pxla
from namoo.interpreters import xla as xla

_TABLE: dict[str, str]
