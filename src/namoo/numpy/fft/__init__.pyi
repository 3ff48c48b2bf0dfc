from namoo.numpy.fft.frequencies import fftfreq as fftfreq
from namoo.numpy.fft.frequencies import fftshift as fftshift
from namoo.numpy.fft.frequencies import ifftshift as ifftshift
from namoo.numpy.fft.frequencies import rfftfreq as rfftfreq
from namoo.numpy.fft.transforms import fft as fft
from namoo.numpy.fft.transforms import fft2 as fft2
from namoo.numpy.fft.transforms import fftn as fftn
from namoo.numpy.fft.transforms import hfft as hfft
from namoo.numpy.fft.transforms import ifft as ifft
from namoo.numpy.fft.transforms import ifft2 as ifft2
from namoo.numpy.fft.transforms import ifftn as ifftn
from namoo.numpy.fft.transforms import ihfft as ihfft
from namoo.numpy.fft.transforms import irfft as irfft
from namoo.numpy.fft.transforms import irfft2 as irfft2
from namoo.numpy.fft.transforms import irfftn as irfftn
from namoo.numpy.fft.transforms import rfft as rfft
from namoo.numpy.fft.transforms import rfft2 as rfft2
from namoo.numpy.fft.transforms import rfftn as rfftn

_TABLE: dict[str, str]
