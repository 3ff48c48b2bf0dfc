"""What to write instead: habits from other libraries, and misspelt names and keywords.

The tables are read only when an exception is made.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import Any

from namoo._base.short import short

ARRAY_ATTRIBUTES = {
    "numpy": "write np.asarray(x)",
    "sharding": "traced values are on no device; their type has one: namoo.typeof(x).sharding",
    "detach": "write lax.stop_gradient(x)",
    "cpu": "write namoo.device_put(x, namoo.devices('cpu')[0])",
    "cuda": "write namoo.device_put(x, device), with a device of namoo.devices()",
    "to": "write namoo.device_put(x, device) for a device, x.astype(dtype) for a dtype",
    "permute": "write x.transpose(1, 0, ...)",
    "unsqueeze": "write x[None] or jnp.expand_dims(x, axis)",
    "expand": "write jnp.broadcast_to(x, shape)",
    "backward": "derivatives are taken of functions: namoo.grad(loss)(params)",
    "grad": "derivatives are taken of functions: namoo.grad(loss)(params)",
    "requires_grad": "derivatives are taken of functions: namoo.grad(loss)(params)",
    "requires_grad_": "derivatives are taken of functions: namoo.grad(loss)(params)",
    "zero_": "arrays cannot be changed; write x = jnp.zeros_like(x)",
    "fill_": "arrays cannot be changed; write x = jnp.full_like(x, value)",
    "copy_": "arrays cannot be changed; write x = y",
    "dim": "write x.ndim",
    "numel": "write x.size",
    "float": "write x.astype('float32')",
    "double": "write x.astype('float64'), with namoo.config.update('jax_enable_x64', True)",
    "half": "write x.astype('float16')",
    "bfloat16": "write x.astype('bfloat16')",
    "long": "write x.astype('int32')",
    "int": "write x.astype('int32')",
    "bool": "write x.astype(bool)",
    "type": "write x.astype(dtype)",
    "contiguous": "leave it out: arrays are contiguous",
    "masked_fill": "write jnp.where(mask, value, x)",
    "t": "write x.T",
    "mm": "write x @ y",
    "bmm": "write x @ y",
    "clone": "leave it out: arrays cannot be changed",
    "index_select": "write jnp.take(x, index, axis)",
    "gather": "write jnp.take_along_axis(x, index, axis)",
    "norm": "write jnp.linalg.norm(x)",
    "fill": "arrays cannot be changed; write x = jnp.full_like(x, value)",
    "append": "arrays cannot be changed; collect values in a list, then jnp.stack(values)",
    "set": "write x.at[index].set(value)",
    "eval": "eager values are ready; x.block_until_ready() waits for other devices",
}

MODULE_ATTRIBUTES = {
    "parameters": "a model is a tree: namoo.tree.leaves(model), or namoo.paths(model) with names",
    "named_parameters": "a model is a tree: namoo.tree.leaves_with_path(model)",
    "state_dict": "a model is a tree: namoo.checkpoints.save(path, model)",
    "load_state_dict": "write model = namoo.checkpoints.load(path, like=model)",
    "train": "write model = nn.inference_mode(model, False)",
    "eval": "write model = nn.inference_mode(model)",
    "to": "write model = namoo.device_put(model, device)",
    "cuda": "write model = namoo.device_put(model, device)",
    "zero_grad": "gradients are returned: grads = namoo.grad(loss)(model)",
    "forward": "call the model: model(x)",
    "apply": "a model holds its parameters: call it, model(x)",
    "init": "a model is made with its parameters: Model(..., key=key)",
    "bind": "a model holds its parameters: call it, model(x)",
}

OPTIMISER_ATTRIBUTES = {
    "step": "write updates, state = tx.update(grads, state, params), "
    "then params = optim.apply_updates(params, updates)",
    "zero_grad": "leave it out: namoo.grad returns the gradients, nothing accumulates",
    "apply": "write updates, state = tx.update(grads, state, params)",
    "minimize": "write updates, state = tx.update(grads, state, params)",
    "param_groups": "write optim.partition({'name': tx}, labels)",
    "state_dict": "the state is a tree: namoo.checkpoints.save(path, state)",
}

# Names of other libraries, or of earlier versions of JAX.
NAMES = {
    "tree_map": "namoo.tree.map",
    "tree_leaves": "namoo.tree.leaves",
    "tree_flatten": "namoo.tree.flatten",
    "tree_unflatten": "namoo.tree.unflatten",
    "tree_structure": "namoo.tree.structure",
    "tree_reduce": "namoo.tree.reduce",
    "tree_transpose": "namoo.tree.transpose",
    "tree_multimap": "namoo.tree.map",
    "tree_at": "model.at[lambda m: m.layer.weight].set(value)",
    "filter_jit": "namoo.jit: plain jit takes models",
    "filter_grad": "namoo.grad: plain grad takes models",
    "filter_value_and_grad": "namoo.value_and_grad: it takes models",
    "filter_vmap": "namoo.vmap: plain vmap takes models",
    "filter_pmap": "namoo.pmap: plain pmap takes models",
    "no_grad": "lax.stop_gradient(x): only what namoo.grad is asked for is differentiated",
    "compile": "namoo.jit",
    "optimizers": "namoo.optim",
    "optimizer": "namoo.optim",
    "if_else": "lax.cond(condition, true_fun, false_fun, *operands)",
    "for_loop": "lax.fori_loop(start, stop, body, value)",
    "function": "namoo.jit",
    "seed": "key = random.key(0), and pass a key to each function",
    "manual_seed": "key = random.key(0), and pass a key to each function",
    "rand": "random.uniform(key, shape)",
    "randn": "random.normal(key, shape)",
    "randperm": "random.permutation(key, n)",
    "shuffle": "random.permutation(key, x)",
    "random": "namoo.random, with a key",
    "index_update": "x.at[idx].set(y)",
    "index_add": "x.at[idx].add(y)",
    "index_mul": "x.at[idx].multiply(y)",
    "index_min": "x.at[idx].min(y)",
    "index_max": "x.at[idx].max(y)",
    "cat": "jnp.concatenate",
    "tensor": "jnp.array",
    "Tensor": "jnp.array",
    "from_numpy": "jnp.asarray",
    "clamp": "jnp.clip",
    "mm": "jnp.matmul",
    "bmm": "jnp.matmul",
    "FloatTensor": "jnp.array",
    "Dense": "nn.Linear(in_features, out_features, key=key)",
    "Dropout2d": "nn.Dropout",
    "Flatten": "nn.Lambda(jnp.ravel)",
    "LSTM": "nn.LSTMCell, with lax.scan",
    "GRU": "nn.GRUCell, with lax.scan",
    "Parameter": "a field of a namoo.Module that holds an array",
    "CrossEntropyLoss": "optim.softmax_cross_entropy_with_integer_labels",
    "cross_entropy": "optim.softmax_cross_entropy_with_integer_labels",
    "MSELoss": "optim.l2_loss",
    "mse_loss": "optim.l2_loss",
    "BCEWithLogitsLoss": "optim.sigmoid_binary_cross_entropy",
    "NLLLoss": "optim.softmax_cross_entropy_with_integer_labels",
    "DataLoader": "namoo.data.Loader",
    "LRScheduler": "a schedule, as in optim.adam(optim.cosine_decay_schedule(1e-3, 1000))",
    "compact": "nothing: layers are fields of a namoo.Module",
}

# Keywords of other libraries, and ours; the first that the function has is suggested.
KEYWORDS = {
    "dim": ("axis", "axes"),
    "dims": ("axis", "axes"),
    "keepdim": ("keepdims",),
    "input": ("x", "a"),
    "other": ("y", "x2"),
    "size": ("shape",),
    "lr": ("learning_rate",),
    "betas": ("b1, b2",),
    "beta1": ("b1",),
    "beta2": ("b2",),
    "epsilon": ("eps",),
    "decay": ("weight_decay",),
    "bias": ("use_bias",),
    "affine": ("channelwise_affine", "use_weight"),
    "features": ("out_features", "out_channels"),
    "in_dim": ("in_features", "in_size"),
    "out_dim": ("out_features", "out_size"),
    "seed": ("key",),
    "rng": ("key",),
    "rngs": ("key",),
    "n": ("num",),
    "device": ("device", "devices"),
    "num_workers": ("workers",),
    "drop_last": ("last",),
    "collate_fn": ("batch_map", "map"),
    "dtypes": ("dtype",),
    "norm": ("max_norm",),
    "steps": ("decay_steps", "transition_steps"),
    "static_args": ("static_argnames",),
    "non_blocking": (),
    "requires_grad": (),
}


def near(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like a misspelt one, or ''.

    Example:
        >>> near("aragne", ["arange", "array"])
        'arange'
    """
    names = [x for x in known if not x.startswith("_")]
    same = [x for x in names if x.lower() == name.lower()]
    return next(iter(same or difflib.get_close_matches(name, names, 1, 0.7)), "")


def _also_in(package: str, name: str) -> str:
    """Return the other namespace that has a name, or ''."""
    for place, called in (
        ("numpy", "jnp"), ("nn", "nn"), ("lax", "lax"), ("random", "random"), ("optim", "optim"),
        ("numpy.linalg", "jnp.linalg"), ("numpy.fft", "jnp.fft"), ("tree", "namoo.tree"),
        ("scipy.special", "namoo.scipy.special"),
    ):  # fmt: skip
        module = importlib.import_module(f"namoo.{place}")
        if module.__name__ != package and name in dir(module):
            return f"{called}.{name}"
    root = sys.modules["namoo"]
    return f"namoo.{name}" if package != "namoo" and name in dir(root) else ""


def name_hint(package: str, name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that a namespace does not have."""
    if name in NAMES and name not in known:
        return f". Write {NAMES[name]}."
    if found := _also_in(package, name):
        return f". Write {found}."
    if found := near(name, known):
        return f". Did you mean {package.rpartition('.')[2]}.{found}?".replace("numpy.", "jnp.")
    return ""


def attribute_message(obj: Any, name: str, table: dict[str, str]) -> str:
    """Return the message for an attribute that an object does not have."""
    message = f"{type(obj).__name__!r} object has no attribute {name!r}"
    hint = table.get(name)
    if hint is None and table is ARRAY_ATTRIBUTES:
        jnp = sys.modules.get("namoo.numpy")
        if name.endswith("_") and not name.startswith("_"):
            hint = f"arrays cannot be changed; write x = {_in_words(name[:-1])}"
        elif jnp is not None and not name.startswith("_") and name in dir(jnp):
            hint = f"write jnp.{name}(x)"
    return f"{message}: {hint}." if hint else message


def _in_words(method: str) -> str:
    symbol = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}.get(method)
    return f"x {symbol} y" if symbol else f"jnp.{method}(x)"


def explain_type_error(error: TypeError, visible: TracebackType | None) -> None:
    """Add to Python's own messages about arguments that do not fit, and values as keys.

    Args:
        error: The error, with its traceback.
        visible: The part of the traceback that the user sees.
    """
    message = str(error)
    if message.endswith((".", "?")):
        return
    if visible is None:
        _explain_call(error, message)
    elif message.startswith("unhashable type: ") and "Tracer" in message:
        error.args = (message + _hash_hint(_last(visible).tb_frame),)


def _last(tb: TracebackType) -> TracebackType:
    while tb.tb_next is not None:
        tb = tb.tb_next
    return tb


def _hash_hint(frame: FrameType) -> str:
    """Return why a traced value cannot be a key, and which argument it comes from."""
    traced = [x for x in frame.f_locals.values() if hasattr(x, "static_remedy")]
    remedies = [text for x in traced if (text := x.static_remedy())]
    return (
        ": a traced value has no number yet, so it cannot be a key of a dict or an element of a "
        "set. "
        + (remedies[0] if remedies else "Mark the argument that it comes from static.")
        + " Otherwise write jnp.array(values)[i] for numbers, lax.switch(i, functions, *operands) "
        "for functions."
    )


def _explain_call(error: TypeError, message: str) -> None:
    """Say how to call a function. The function is found in the last frame, that of the call."""
    name = message.partition("()")[0]
    if error.__traceback__ is None or len(name) == len(message):
        return
    local = _last(error.__traceback__).tb_frame.f_locals
    for fun in local.values():
        if name in (getattr(fun, "__qualname__", 0), getattr(fun, "__name__", 0)):
            given = [*local.get("args", ())] if type(local.get("args")) is tuple else []
            kwargs = local.get("kwargs", local.get("options"))
            text = call_message(message, fun, given, kwargs if type(kwargs) is dict else {})
            error.args = (text + _caller_hint(error.__traceback__),)
            return


# How the functions that take functions call them.
CALLS = {
    "scan": "scan calls it as f(carry, x), and expects the pair (carry, y)",
    "fori_loop": "fori_loop calls it as body(i, value), and expects the next value",
    "while_loop": "while_loop calls both functions as f(value)",
    "cond": "cond calls its functions with the operands: cond(pred, f, g, *operands)",
    "switch": "switch calls its functions with the operands: switch(index, functions, *operands)",
    "associative_scan": "associative_scan calls it as f(a, b)",
    "map": "lax.map calls it as f(x)",
    "custom_root": "custom_root calls it as f(x)",
}


def _caller_hint(tb: TracebackType | None) -> str:
    """Return how the function was called, if one of `CALLS` is on the way to it."""
    while tb is not None:
        if tb.tb_frame.f_code.co_name in CALLS:
            return f" {CALLS[tb.tb_frame.f_code.co_name]}."
        tb = tb.tb_next
    return ""


def call_message(
    message: str, fun: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> str:
    """Return Python's message for arguments that do not fit, and how to call the function."""
    message = message.replace(".__init__()", "()").replace(".__call__()", "()")
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return message
    parameters = [name for name in signature.parameters if name != "self"]
    if found := re.search(r"unexpected keyword argument '(\w+)'", message):
        return message + _keyword_hint(found[1], kwargs, parameters)
    if re.search(r"missing .*'key'", message):
        if any(str(getattr(x, "dtype", "")).startswith("key<") for x in args):
            return f"{message}. Pass the key by its name: {_called(fun)}(..., key=key)."
        return f"{message}. Pass a random key: {_key_example(fun, parameters)}."
    if "positional argument" in message or "keyword-only" in message:
        return f"{message}. Its parameters: {short_signature(_called(fun), signature)}."
    return message


def _called(fun: Callable[..., Any]) -> str:
    """Return the name by which a user calls a function: that of the class for a constructor."""
    return re.sub(r"\.__(init|call)__$", "", fun.__qualname__).rpartition(".")[2]


def _keyword_hint(name: str, kwargs: dict[str, Any], parameters: list[str]) -> str:
    value = short(kwargs[name], 40) if name in kwargs else "..."
    for target in KEYWORDS.get(name, ()):
        if set(target.split(", ")) <= set(parameters):
            if ", " in target:
                return f". The parameters are called {target.replace(', ', ' and ')}."
            return f". Write {target}={value}."
    if found := near(name, parameters):
        return f". Did you mean {found!r}?"
    named = ", ".join(parameters[:12]) + (", …" if len(parameters) > 12 else "")
    return f". Its parameters: {named}." if named else "."


def _key_example(fun: Callable[..., Any], parameters: list[str]) -> str:
    name = _called(fun)
    if parameters and parameters[0] == "key":
        return f"{name}(random.key(0), ...)"
    return f"{name}(..., key=random.key(0))"


def short_signature(name: str, signature: inspect.Signature) -> str:
    """Return a signature without annotations, as it would be called."""
    parts, star = [], False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        default = "" if parameter.default is parameter.empty else f"={short(parameter.default, 20)}"
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        parts.append(f"{stars.get(parameter.kind, '')}{parameter.name}{default}")
    text = ", ".join(parts)
    return f"{name}({text if len(text) <= 160 else text[:157] + '...'})"
