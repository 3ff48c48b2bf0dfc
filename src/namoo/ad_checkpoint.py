"""Rematerialisation: names for values, policies, and a report of what is kept."""

from namoo.transforms.remat import Offloadable as Offloadable
from namoo.transforms.remat import Recompute as Recompute
from namoo.transforms.remat import Saveable as Saveable
from namoo.transforms.remat import checkpoint as checkpoint
from namoo.transforms.remat import checkpoint_name as checkpoint_name
from namoo.transforms.remat import checkpoint_policies as checkpoint_policies
from namoo.transforms.remat import print_saved_residuals as print_saved_residuals
from namoo.transforms.remat import saved_residuals as saved_residuals

remat = checkpoint
