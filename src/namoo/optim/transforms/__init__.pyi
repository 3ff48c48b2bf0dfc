from namoo.optim.transforms.accumulation import ApplyEvery as ApplyEvery
from namoo.optim.transforms.accumulation import MultiSteps as MultiSteps
from namoo.optim.transforms.accumulation import MultiStepsState as MultiStepsState
from namoo.optim.transforms.accumulation import ShouldSkipUpdateFunction as ShouldSkipUpdateFunction
from namoo.optim.transforms.accumulation import apply_every as apply_every
from namoo.optim.transforms.accumulation import skip_large_updates as skip_large_updates
from namoo.optim.transforms.accumulation import skip_not_finite as skip_not_finite
from namoo.optim.transforms.adam import ScaleByAdamState as ScaleByAdamState
from namoo.optim.transforms.adam import ScaleByAdanState as ScaleByAdanState
from namoo.optim.transforms.adam import ScaleByAmsgradState as ScaleByAmsgradState
from namoo.optim.transforms.adam import ScaleByBeliefState as ScaleByBeliefState
from namoo.optim.transforms.adam import ScaleByLionState as ScaleByLionState
from namoo.optim.transforms.adam import ScaleByNovogradState as ScaleByNovogradState
from namoo.optim.transforms.adam import scale_by_adam as scale_by_adam
from namoo.optim.transforms.adam import scale_by_adamax as scale_by_adamax
from namoo.optim.transforms.adam import scale_by_adan as scale_by_adan
from namoo.optim.transforms.adam import scale_by_amsgrad as scale_by_amsgrad
from namoo.optim.transforms.adam import scale_by_belief as scale_by_belief
from namoo.optim.transforms.adam import scale_by_lion as scale_by_lion
from namoo.optim.transforms.adam import scale_by_novograd as scale_by_novograd
from namoo.optim.transforms.adam import scale_by_radam as scale_by_radam
from namoo.optim.transforms.adam import scale_by_yogi as scale_by_yogi
from namoo.optim.transforms.adding import AddDecayedWeightsState as AddDecayedWeightsState
from namoo.optim.transforms.adding import AddNoiseState as AddNoiseState
from namoo.optim.transforms.adding import WeightDecaySchedule as WeightDecaySchedule
from namoo.optim.transforms.adding import add_decayed_weights as add_decayed_weights
from namoo.optim.transforms.adding import add_noise as add_noise
from namoo.optim.transforms.clipping import AdaptiveGradClipState as AdaptiveGradClipState
from namoo.optim.transforms.clipping import ClipByGlobalNormState as ClipByGlobalNormState
from namoo.optim.transforms.clipping import ClipState as ClipState
from namoo.optim.transforms.clipping import adaptive_grad_clip as adaptive_grad_clip
from namoo.optim.transforms.clipping import clip as clip
from namoo.optim.transforms.clipping import clip_by_block_rms as clip_by_block_rms
from namoo.optim.transforms.clipping import clip_by_global_norm as clip_by_global_norm
from namoo.optim.transforms.clipping import clip_by_leaf_norm as clip_by_leaf_norm
from namoo.optim.transforms.clipping import (
    per_example_global_norm_clip as per_example_global_norm_clip,
)
from namoo.optim.transforms.clipping import (
    per_example_layer_norm_clip as per_example_layer_norm_clip,
)
from namoo.optim.transforms.clipping import unitwise_clip as unitwise_clip
from namoo.optim.transforms.clipping import unitwise_norm as unitwise_norm
from namoo.optim.transforms.combining import MultiTransformState as MultiTransformState
from namoo.optim.transforms.combining import PartitionState as PartitionState
from namoo.optim.transforms.combining import chain as chain
from namoo.optim.transforms.combining import multi_transform as multi_transform
from namoo.optim.transforms.combining import named_chain as named_chain
from namoo.optim.transforms.combining import partition as partition
from namoo.optim.transforms.conditionality import ApplyIfFiniteState as ApplyIfFiniteState
from namoo.optim.transforms.conditionality import ConditionallyMaskState as ConditionallyMaskState
from namoo.optim.transforms.conditionality import (
    ConditionallyTransformState as ConditionallyTransformState,
)
from namoo.optim.transforms.conditionality import ConditionFn as ConditionFn
from namoo.optim.transforms.conditionality import apply_if_finite as apply_if_finite
from namoo.optim.transforms.conditionality import conditionally_mask as conditionally_mask
from namoo.optim.transforms.conditionality import conditionally_transform as conditionally_transform
from namoo.optim.transforms.constraining import NonNegativeParamsState as NonNegativeParamsState
from namoo.optim.transforms.constraining import ZeroNansState as ZeroNansState
from namoo.optim.transforms.constraining import keep_params_nonnegative as keep_params_nonnegative
from namoo.optim.transforms.constraining import zero_nans as zero_nans
from namoo.optim.transforms.freezing import freeze as freeze
from namoo.optim.transforms.freezing import selective_transform as selective_transform
from namoo.optim.transforms.layouts import flatten as flatten
from namoo.optim.transforms.lbfgs import ScaleByLBFGSState as ScaleByLBFGSState
from namoo.optim.transforms.lbfgs import scale_by_lbfgs as scale_by_lbfgs
from namoo.optim.transforms.masking import MaskedNode as MaskedNode
from namoo.optim.transforms.masking import MaskedState as MaskedState
from namoo.optim.transforms.masking import masked as masked
from namoo.optim.transforms.momentum import EmaState as EmaState
from namoo.optim.transforms.momentum import TraceState as TraceState
from namoo.optim.transforms.momentum import ema as ema
from namoo.optim.transforms.momentum import trace as trace
from namoo.optim.transforms.monitoring import MonitorState as MonitorState
from namoo.optim.transforms.monitoring import SnapshotState as SnapshotState
from namoo.optim.transforms.monitoring import measure_with_ema as measure_with_ema
from namoo.optim.transforms.monitoring import monitor as monitor
from namoo.optim.transforms.monitoring import snapshot as snapshot
from namoo.optim.transforms.rms import FactoredState as FactoredState
from namoo.optim.transforms.rms import ScaleByAdaDeltaState as ScaleByAdaDeltaState
from namoo.optim.transforms.rms import ScaleByRmsState as ScaleByRmsState
from namoo.optim.transforms.rms import ScaleByRmsWithCountState as ScaleByRmsWithCountState
from namoo.optim.transforms.rms import ScaleByRssState as ScaleByRssState
from namoo.optim.transforms.rms import ScaleByRStdDevState as ScaleByRStdDevState
from namoo.optim.transforms.rms import ScaleByRStdDevWithCountState as ScaleByRStdDevWithCountState
from namoo.optim.transforms.rms import ScaleBySM3State as ScaleBySM3State
from namoo.optim.transforms.rms import scale_by_adadelta as scale_by_adadelta
from namoo.optim.transforms.rms import scale_by_factored_rms as scale_by_factored_rms
from namoo.optim.transforms.rms import scale_by_rms as scale_by_rms
from namoo.optim.transforms.rms import scale_by_rss as scale_by_rss
from namoo.optim.transforms.rms import scale_by_sm3 as scale_by_sm3
from namoo.optim.transforms.rms import scale_by_stddev as scale_by_stddev
from namoo.optim.transforms.rprop import ScaleByRpropState as ScaleByRpropState
from namoo.optim.transforms.rprop import scale_by_rprop as scale_by_rprop
from namoo.optim.transforms.scaling import (
    ScaleByDistanceOverGradientsState as ScaleByDistanceOverGradientsState,
)
from namoo.optim.transforms.scaling import (
    ScaleByOptimisticGradientState as ScaleByOptimisticGradientState,
)
from namoo.optim.transforms.scaling import ScaleByScheduleState as ScaleByScheduleState
from namoo.optim.transforms.scaling import ScaleByTrustRatioState as ScaleByTrustRatioState
from namoo.optim.transforms.scaling import ScaleState as ScaleState
from namoo.optim.transforms.scaling import centralize as centralize
from namoo.optim.transforms.scaling import normalize_by_update_norm as normalize_by_update_norm
from namoo.optim.transforms.scaling import scale as scale
from namoo.optim.transforms.scaling import (
    scale_by_distance_over_gradients as scale_by_distance_over_gradients,
)
from namoo.optim.transforms.scaling import scale_by_learning_rate as scale_by_learning_rate
from namoo.optim.transforms.scaling import (
    scale_by_optimistic_gradient as scale_by_optimistic_gradient,
)
from namoo.optim.transforms.scaling import scale_by_param_block_norm as scale_by_param_block_norm
from namoo.optim.transforms.scaling import scale_by_param_block_rms as scale_by_param_block_rms
from namoo.optim.transforms.scaling import scale_by_polyak as scale_by_polyak
from namoo.optim.transforms.scaling import scale_by_schedule as scale_by_schedule
from namoo.optim.transforms.scaling import scale_by_sign as scale_by_sign
from namoo.optim.transforms.scaling import scale_by_trust_ratio as scale_by_trust_ratio

_TABLE: dict[str, str]
