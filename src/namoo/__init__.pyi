from namoo import ad_checkpoint as ad_checkpoint
from namoo import checkpoints as checkpoints
from namoo import core as core
from namoo import custom_batching as custom_batching
from namoo import custom_derivatives as custom_derivatives
from namoo import data as data
from namoo import debug as debug
from namoo import distributed as distributed
from namoo import dlpack as dlpack
from namoo import dtypes as dtypes
from namoo import errors as errors
from namoo import example_libraries as example_libraries
from namoo import experimental as experimental
from namoo import flatten_util as flatten_util
from namoo import image as image
from namoo import lax as lax
from namoo import mixed as mixed
from namoo import nn as nn
from namoo import numpy as numpy
from namoo import ops as ops
from namoo import optim as optim
from namoo import random as random
from namoo import scipy as scipy
from namoo import sharding as sharding
from namoo import stages as stages
from namoo import struct as struct
from namoo import train as train
from namoo import tree as tree
from namoo import tree_util as tree_util
from namoo import typing as typing
from namoo._config import checking_leaks as checking_leaks
from namoo._config import config as config
from namoo._config import debug_infs as debug_infs
from namoo._config import debug_key_reuse as debug_key_reuse
from namoo._config import debug_nans as debug_nans
from namoo._config import default_device as default_device
from namoo._config import default_matmul_precision as default_matmul_precision
from namoo._config import default_prng_impl as default_prng_impl
from namoo._config import disable_jit as disable_jit
from namoo._config import enable_checks as enable_checks
from namoo._config import enable_custom_prng as enable_custom_prng
from namoo._config import enable_x64 as enable_x64
from namoo._config import explain_cache_misses as explain_cache_misses
from namoo._config import legacy_prng_key as legacy_prng_key
from namoo._config import log_compiles as log_compiles
from namoo._config import numpy_dtype_promotion as numpy_dtype_promotion
from namoo._config import numpy_rank_promotion as numpy_rank_promotion
from namoo._config import softmax_custom_jvp as softmax_custom_jvp
from namoo._config import strict as strict
from namoo._config import threefry_partitionable as threefry_partitionable
from namoo._config import transfer_guard as transfer_guard
from namoo._config import transfer_guard_device_to_device as transfer_guard_device_to_device
from namoo._config import transfer_guard_device_to_host as transfer_guard_device_to_host
from namoo._config import transfer_guard_host_to_device as transfer_guard_host_to_device
from namoo._dtypes import float0 as float0
from namoo._module.filters import combine as combine
from namoo._module.filters import filter as filter
from namoo._module.filters import is_array as is_array
from namoo._module.filters import is_array_like as is_array_like
from namoo._module.filters import is_inexact_array as is_inexact_array
from namoo._module.filters import is_inexact_array_like as is_inexact_array_like
from namoo._module.filters import partition as partition
from namoo._module.module import Module as Module
from namoo.api.device import block_until_ready as block_until_ready
from namoo.api.device import copy_to_host_async as copy_to_host_async
from namoo.api.device import cpu_devices as cpu_devices
from namoo.api.device import default_backend as default_backend
from namoo.api.device import device_count as device_count
from namoo.api.device import device_get as device_get
from namoo.api.device import device_put as device_put
from namoo.api.device import device_put_replicated as device_put_replicated
from namoo.api.device import device_put_sharded as device_put_sharded
from namoo.api.device import devices as devices
from namoo.api.device import effects_barrier as effects_barrier
from namoo.api.device import live_arrays as live_arrays
from namoo.api.device import local_device_count as local_device_count
from namoo.api.device import local_devices as local_devices
from namoo.api.device import process_count as process_count
from namoo.api.device import process_index as process_index
from namoo.api.device import process_indices as process_indices
from namoo.api.grad import fwd_and_bwd as fwd_and_bwd
from namoo.api.grad import grad as grad
from namoo.api.grad import hessian as hessian
from namoo.api.grad import jacfwd as jacfwd
from namoo.api.grad import jacobian as jacobian
from namoo.api.grad import jacrev as jacrev
from namoo.api.grad import jvp as jvp
from namoo.api.grad import linear_transpose as linear_transpose
from namoo.api.grad import linearize as linearize
from namoo.api.grad import value_and_grad as value_and_grad
from namoo.api.grad import vjp as vjp
from namoo.api.inspect import ensure_compile_time_eval as ensure_compile_time_eval
from namoo.api.inspect import eval_shape as eval_shape
from namoo.api.inspect import is_traced as is_traced
from namoo.api.inspect import make_jaxpr as make_jaxpr
from namoo.api.inspect import named_call as named_call
from namoo.api.inspect import named_scope as named_scope
from namoo.api.inspect import typeof as typeof
from namoo.api.jit import clear_caches as clear_caches
from namoo.api.jit import jit as jit
from namoo.api.map import pmap as pmap
from namoo.api.map import vmap as vmap
from namoo.api.mesh import make_mesh as make_mesh
from namoo.api.placement import Shard as Shard
from namoo.api.shard_map import shard_map as shard_map
from namoo.api.sharded import make_array_from_callback as make_array_from_callback
from namoo.api.sharded import (
    make_array_from_process_local_data as make_array_from_process_local_data,
)
from namoo.api.sharded import (
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from namoo.api.sharded import reshard as reshard
from namoo.control.callback import pure_callback as pure_callback
from namoo.core.avals import ShapeDtypeStruct as ShapeDtypeStruct
from namoo.engines.base import Device as Device
from namoo.engines.native.threads import get_num_threads as get_num_threads
from namoo.engines.native.threads import set_num_threads as set_num_threads
from namoo.errors import hide_frames as hide_frames
from namoo.numpy._methods import Array as Array
from namoo.paths import paths as paths
from namoo.sharding import NamedSharding as NamedSharding
from namoo.sharding import PartitionSpec
from namoo.sharding import set_mesh as set_mesh
from namoo.transforms.custom import closure_convert as closure_convert
from namoo.transforms.custom import custom_gradient as custom_gradient
from namoo.transforms.custom import custom_jvp as custom_jvp
from namoo.transforms.custom import custom_vjp as custom_vjp
from namoo.transforms.remat import checkpoint as checkpoint
from namoo.transforms.remat import checkpoint_policies as checkpoint_policies

__version__: str
host_count = process_count
host_id = process_index
host_ids = process_indices
P = PartitionSpec
remat = checkpoint
