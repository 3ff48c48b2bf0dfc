"""Types of mutable references, and what programs do with them."""

from namoo.transforms.refs import AbstractRef as AbstractRef
from namoo.transforms.refs import AccumEffect as AccumEffect
from namoo.transforms.refs import ReadEffect as ReadEffect
from namoo.transforms.refs import RefEffect as RefEffect
from namoo.transforms.refs import TransformedRef as TransformedRef
from namoo.transforms.refs import WriteEffect as WriteEffect
