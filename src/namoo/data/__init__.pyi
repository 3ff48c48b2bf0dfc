from namoo.data.digits import digits as digits
from namoo.data.loader import Loader as Loader
from namoo.data.order import permutation as permutation
from namoo.data.order import weighted as weighted
from namoo.data.small import houses as houses
from namoo.data.small import tales as tales
from namoo.data.sources import mapped as mapped
from namoo.data.sources import stack as stack
from namoo.data.sources import windows as windows

_TABLE: dict[str, str]
