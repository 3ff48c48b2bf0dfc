"""Losses: of numbers, classes, distributions, sequences, embeddings, segmentations."""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "optim.losses.classification": (
        "hinge_loss make_fenchel_young_loss multiclass_hinge_loss multiclass_perceptron_loss "
        "multiclass_sparsemax_loss perceptron_loss poly_loss_cross_entropy "
        "safe_softmax_cross_entropy sigmoid_binary_cross_entropy sigmoid_focal_loss "
        "softmax_cross_entropy softmax_cross_entropy_with_integer_labels sparsemax_loss"
    ),
    "optim.losses.divergences": (
        "convex_kl_divergence generalized_kl_divergence kl_divergence "
        "kl_divergence_with_log_targets smooth_labels"
    ),
    "optim.losses.embeddings": "ntxent ranking_softmax_loss triplet_margin_loss",
    "optim.losses.regression": (
        "cosine_distance cosine_similarity huber_loss l2_loss log_cosh squared_error"
    ),
    "optim.losses.segmentation": "binary_dice_loss dice_loss multiclass_generalized_dice_loss",
    "optim.losses.sequences": "ctc_loss ctc_loss_with_forward_probs",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
