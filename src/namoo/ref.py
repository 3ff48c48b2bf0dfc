"""Mutable references: `new_ref` makes one, `ref[...]` reads it, `ref[...] = x` writes to it."""

from namoo.transforms.refs import AbstractRef as AbstractRef
from namoo.transforms.refs import Ref as Ref
from namoo.transforms.refs import addupdate as addupdate
from namoo.transforms.refs import empty_ref as empty_ref
from namoo.transforms.refs import free_ref as free_ref
from namoo.transforms.refs import freeze as freeze
from namoo.transforms.refs import get as get
from namoo.transforms.refs import new_ref as new_ref
from namoo.transforms.refs import set as set
from namoo.transforms.refs import swap as swap
