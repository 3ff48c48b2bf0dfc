from namoo.interpreters import ad as ad
from namoo.interpreters import batching as batching
from namoo.interpreters import mlir as mlir
