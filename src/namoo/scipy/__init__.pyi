from namoo.scipy import cluster as cluster
from namoo.scipy import fft as fft
from namoo.scipy import integrate as integrate
from namoo.scipy import interpolate as interpolate
from namoo.scipy import linalg as linalg
from namoo.scipy import ndimage as ndimage
from namoo.scipy import optimize as optimize
from namoo.scipy import signal as signal
from namoo.scipy import sparse as sparse
from namoo.scipy import spatial as spatial
from namoo.scipy import special as special
from namoo.scipy import stats as stats

_TABLE: dict[str, str]
