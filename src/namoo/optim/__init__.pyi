from namoo.optim import losses as losses
from namoo.optim import perturbations as perturbations
from namoo.optim import projections as projections
from namoo.optim import schedules as schedules
from namoo.optim import transforms as transforms
from namoo.optim import tree as tree
from namoo.optim import tree_utils as tree_utils
from namoo.optim.alias import adabelief as adabelief
from namoo.optim.alias import adadelta as adadelta
from namoo.optim.alias import adafactor as adafactor
from namoo.optim.alias import adagrad as adagrad
from namoo.optim.alias import adam as adam
from namoo.optim.alias import adamax as adamax
from namoo.optim.alias import adamaxw as adamaxw
from namoo.optim.alias import adamw as adamw
from namoo.optim.alias import adan as adan
from namoo.optim.alias import amsgrad as amsgrad
from namoo.optim.alias import fromage as fromage
from namoo.optim.alias import lamb as lamb
from namoo.optim.alias import lars as lars
from namoo.optim.alias import lbfgs as lbfgs
from namoo.optim.alias import lion as lion
from namoo.optim.alias import nadam as nadam
from namoo.optim.alias import nadamw as nadamw
from namoo.optim.alias import noisy_sgd as noisy_sgd
from namoo.optim.alias import novograd as novograd
from namoo.optim.alias import optimistic_adam as optimistic_adam
from namoo.optim.alias import optimistic_adam_v2 as optimistic_adam_v2
from namoo.optim.alias import optimistic_gradient_descent as optimistic_gradient_descent
from namoo.optim.alias import polyak_sgd as polyak_sgd
from namoo.optim.alias import radam as radam
from namoo.optim.alias import rmsprop as rmsprop
from namoo.optim.alias import rprop as rprop
from namoo.optim.alias import sgd as sgd
from namoo.optim.alias import sign_sgd as sign_sgd
from namoo.optim.alias import signum as signum
from namoo.optim.alias import sm3 as sm3
from namoo.optim.alias import yogi as yogi
from namoo.optim.base import EmptyState as EmptyState
from namoo.optim.base import GradientTransformation as GradientTransformation
from namoo.optim.base import GradientTransformationExtraArgs as GradientTransformationExtraArgs
from namoo.optim.base import MaskOrFn as MaskOrFn
from namoo.optim.base import OptState as OptState
from namoo.optim.base import Params as Params
from namoo.optim.base import ScalarOrSchedule as ScalarOrSchedule
from namoo.optim.base import Schedule as Schedule
from namoo.optim.base import StatefulSchedule as StatefulSchedule
from namoo.optim.base import TransformInitFn as TransformInitFn
from namoo.optim.base import TransformUpdateExtraArgsFn as TransformUpdateExtraArgsFn
from namoo.optim.base import TransformUpdateFn as TransformUpdateFn
from namoo.optim.base import Updates as Updates
from namoo.optim.base import apply_updates as apply_updates
from namoo.optim.base import identity as identity
from namoo.optim.base import incremental_update as incremental_update
from namoo.optim.base import init_empty_state as init_empty_state
from namoo.optim.base import periodic_update as periodic_update
from namoo.optim.base import set_to_zero as set_to_zero
from namoo.optim.base import stateless as stateless
from namoo.optim.base import stateless_with_tree_map as stateless_with_tree_map
from namoo.optim.base import with_extra_args_support as with_extra_args_support
from namoo.optim.bridge import from_optax as from_optax
from namoo.optim.bridge import to_optax as to_optax
from namoo.optim.distributions import MultiNormalDiagFromLogScale as MultiNormalDiagFromLogScale
from namoo.optim.distributions import multi_normal as multi_normal
from namoo.optim.inject import InjectHyperparamsState as InjectHyperparamsState
from namoo.optim.inject import InjectStatefulHyperparamsState as InjectStatefulHyperparamsState
from namoo.optim.inject import WrappedSchedule as WrappedSchedule
from namoo.optim.inject import WrappedScheduleState as WrappedScheduleState
from namoo.optim.inject import inject_hyperparams as inject_hyperparams
from namoo.optim.inject import inject_stateful_hyperparams as inject_stateful_hyperparams
from namoo.optim.linear_algebra import matrix_inverse_pth_root as matrix_inverse_pth_root
from namoo.optim.linear_algebra import nnls as nnls
from namoo.optim.linear_algebra import power_iteration as power_iteration
from namoo.optim.linesearch import BacktrackingLinesearchInfo as BacktrackingLinesearchInfo
from namoo.optim.linesearch import (
    ScaleByBacktrackingLinesearchState as ScaleByBacktrackingLinesearchState,
)
from namoo.optim.linesearch import ScaleByZoomLinesearchState as ScaleByZoomLinesearchState
from namoo.optim.linesearch import ZoomLinesearchInfo as ZoomLinesearchInfo
from namoo.optim.linesearch import (
    scale_by_backtracking_linesearch as scale_by_backtracking_linesearch,
)
from namoo.optim.linesearch import scale_by_zoom_linesearch as scale_by_zoom_linesearch
from namoo.optim.linesearch import value_and_grad_from_state as value_and_grad_from_state
from namoo.optim.lookahead import LookaheadParams as LookaheadParams
from namoo.optim.lookahead import LookaheadState as LookaheadState
from namoo.optim.lookahead import lookahead as lookahead
from namoo.optim.losses.classification import hinge_loss as hinge_loss
from namoo.optim.losses.classification import make_fenchel_young_loss as make_fenchel_young_loss
from namoo.optim.losses.classification import multiclass_hinge_loss as multiclass_hinge_loss
from namoo.optim.losses.classification import (
    multiclass_perceptron_loss as multiclass_perceptron_loss,
)
from namoo.optim.losses.classification import multiclass_sparsemax_loss as multiclass_sparsemax_loss
from namoo.optim.losses.classification import perceptron_loss as perceptron_loss
from namoo.optim.losses.classification import poly_loss_cross_entropy as poly_loss_cross_entropy
from namoo.optim.losses.classification import (
    safe_softmax_cross_entropy as safe_softmax_cross_entropy,
)
from namoo.optim.losses.classification import (
    sigmoid_binary_cross_entropy as sigmoid_binary_cross_entropy,
)
from namoo.optim.losses.classification import sigmoid_focal_loss as sigmoid_focal_loss
from namoo.optim.losses.classification import softmax_cross_entropy as softmax_cross_entropy
from namoo.optim.losses.classification import (
    softmax_cross_entropy_with_integer_labels as softmax_cross_entropy_with_integer_labels,
)
from namoo.optim.losses.classification import sparsemax_loss as sparsemax_loss
from namoo.optim.losses.divergences import convex_kl_divergence as convex_kl_divergence
from namoo.optim.losses.divergences import generalized_kl_divergence as generalized_kl_divergence
from namoo.optim.losses.divergences import kl_divergence as kl_divergence
from namoo.optim.losses.divergences import (
    kl_divergence_with_log_targets as kl_divergence_with_log_targets,
)
from namoo.optim.losses.divergences import smooth_labels as smooth_labels
from namoo.optim.losses.embeddings import ntxent as ntxent
from namoo.optim.losses.embeddings import ranking_softmax_loss as ranking_softmax_loss
from namoo.optim.losses.embeddings import triplet_margin_loss as triplet_margin_loss
from namoo.optim.losses.regression import cosine_distance as cosine_distance
from namoo.optim.losses.regression import cosine_similarity as cosine_similarity
from namoo.optim.losses.regression import huber_loss as huber_loss
from namoo.optim.losses.regression import l2_loss as l2_loss
from namoo.optim.losses.regression import log_cosh as log_cosh
from namoo.optim.losses.regression import squared_error as squared_error
from namoo.optim.losses.segmentation import binary_dice_loss as binary_dice_loss
from namoo.optim.losses.segmentation import dice_loss as dice_loss
from namoo.optim.losses.segmentation import (
    multiclass_generalized_dice_loss as multiclass_generalized_dice_loss,
)
from namoo.optim.losses.sequences import ctc_loss as ctc_loss
from namoo.optim.losses.sequences import ctc_loss_with_forward_probs as ctc_loss_with_forward_probs
from namoo.optim.numerics import safe_increment as safe_increment
from namoo.optim.numerics import safe_int32_increment as safe_int32_increment
from namoo.optim.numerics import safe_norm as safe_norm
from namoo.optim.numerics import safe_root_mean_squares as safe_root_mean_squares
from namoo.optim.numerics import scale_gradient as scale_gradient
from namoo.optim.schedules import constant_schedule as constant_schedule
from namoo.optim.schedules import cosine_decay_schedule as cosine_decay_schedule
from namoo.optim.schedules import cosine_onecycle_schedule as cosine_onecycle_schedule
from namoo.optim.schedules import exponential_decay as exponential_decay
from namoo.optim.schedules import join_schedules as join_schedules
from namoo.optim.schedules import linear_onecycle_schedule as linear_onecycle_schedule
from namoo.optim.schedules import linear_schedule as linear_schedule
from namoo.optim.schedules import piecewise_constant_schedule as piecewise_constant_schedule
from namoo.optim.schedules import piecewise_interpolate_schedule as piecewise_interpolate_schedule
from namoo.optim.schedules import polynomial_schedule as polynomial_schedule
from namoo.optim.schedules import sgdr_schedule as sgdr_schedule
from namoo.optim.schedules import warmup_constant_schedule as warmup_constant_schedule
from namoo.optim.schedules import warmup_cosine_decay_schedule as warmup_cosine_decay_schedule
from namoo.optim.schedules import (
    warmup_exponential_decay_schedule as warmup_exponential_decay_schedule,
)
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
from namoo.optim.tree_utils.state_utils import tree_map_params as tree_map_params
from namoo.optim.tree_utils.tree_math import global_norm as global_norm
from namoo.optim.tree_utils.tree_math import (
    tree_bias_correction,
    tree_update_infinity_moment,
    tree_update_moment,
    tree_update_moment_per_elem_norm,
)

_TABLE: dict[str, str]
bias_correction = tree_bias_correction
update_infinity_moment = tree_update_infinity_moment
update_moment = tree_update_moment
update_moment_per_elem_norm = tree_update_moment_per_elem_norm
