"""Functions for neural networks: activations, normalisation, attention, initialisers."""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "nn.activations": (
        "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu "
        "log1mexp log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus "
        "sparse_sigmoid squareplus swish tanh"
    ),
    "nn.attention": (
        "dot_product_attention get_scaled_dot_general_config scaled_dot_general scaled_matmul"
    ),
    "nn.initializers": ".",
    "nn.normalize": "log_softmax logmeanexp logsumexp one_hot softmax standardize",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
