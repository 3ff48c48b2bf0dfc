"""Functions for neural networks: activations, normalisation, attention, initialisers."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "nn.activations": (
        "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu "
        "log1mexp log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus "
        "sparse_sigmoid squareplus swish tanh"
    ),
    "nn.attention": (
        "dot_product_attention get_scaled_dot_general_config scaled_dot_general scaled_matmul"
    ),
    "nn.batch_norm": "BatchNorm",
    "nn.convolution": "Conv Conv1d Conv2d Conv3d",
    "nn.convolution_transpose": "ConvTranspose ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "nn.dropout": "Dropout inference_mode",
    "nn.embedding": "Embedding RotaryPositionalEmbedding",
    "nn.initializers": ".",
    "nn.linear": "Identity Linear",
    "nn.mlp": "MLP",
    "nn.multihead": "MultiheadAttention",
    "nn.normalize": "log_softmax logmeanexp logsumexp one_hot softmax standardize",
    "nn.norms": "GroupNorm LayerNorm RMSNorm",
    "nn.pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d "
        "AdaptiveMaxPool2d AdaptiveMaxPool3d AdaptivePool AvgPool AvgPool1d AvgPool2d "
        "AvgPool3d MaxPool MaxPool1d MaxPool2d MaxPool3d Pool"
    ),
    "nn.prelu": "PReLU",
    "nn.recurrent": "GRUCell LSTMCell RNNCell",
    "nn.reparametrize": "SpectralNorm WeightNorm",
    "nn.sequential": "Lambda Sequential",
    "nn.state": "State StateIndex StatefulLayer make_with_state",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
