from namoo.optim.contrib.averaging import ScheduleFreeState as ScheduleFreeState
from namoo.optim.contrib.averaging import schedule_free as schedule_free
from namoo.optim.contrib.averaging import schedule_free_adamw as schedule_free_adamw
from namoo.optim.contrib.averaging import schedule_free_eval_params as schedule_free_eval_params
from namoo.optim.contrib.averaging import schedule_free_sgd as schedule_free_sgd
from namoo.optim.contrib.orthogonal import MuonDimensionNumbers as MuonDimensionNumbers
from namoo.optim.contrib.orthogonal import MuonState as MuonState
from namoo.optim.contrib.orthogonal import muon as muon
from namoo.optim.contrib.orthogonal import (
    orthogonalize_via_newton_schulz as orthogonalize_via_newton_schulz,
)
from namoo.optim.contrib.orthogonal import scale_by_muon as scale_by_muon
from namoo.optim.contrib.orthogonal import scale_by_shape as scale_by_shape
from namoo.optim.contrib.sharpness import NormalizeState as NormalizeState
from namoo.optim.contrib.sharpness import SAMState as SAMState
from namoo.optim.contrib.sharpness import normalize as normalize
from namoo.optim.contrib.sharpness import sam as sam
