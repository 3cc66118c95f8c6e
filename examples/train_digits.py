"""Trains a softmax classifier of digits with NumPy. The weights are bit-identical in every run.

python3 train_digits.py IMAGES.npy LABELS.npy [EPOCHS]
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
import stoker
from numpy.typing import NDArray


def train(images: Path, labels: Path, epochs: int) -> tuple[str, float]:
    """Returns a digest of the weights, and the accuracy on the held-out digits."""
    fields = {"image": stoker.Field(images, transforms=[stoker.scale(1 / 16)]), "label": stoker.Field(labels)}
    weights = np.zeros((65, 10), np.float32)
    right = rows = 0
    with stoker.Loader(fields, batch_size=64, shuffle=True, seed=1, split="train", to="numpy") as loader:
        for _ in range(epochs):
            for batch in loader:
                inputs = with_bias(batch["image"])
                error = softmax(inputs @ weights)
                error[np.arange(batch.rows), batch["label"]] -= 1
                weights -= 0.5 / batch.rows * (inputs.T @ error)
    with stoker.Loader(fields, batch_size=64, split="val", num_epochs=1, to="numpy") as loader:
        for batch in loader:
            guess = (with_bias(batch["image"]) @ weights).argmax(1)
            right += int((guess == batch["label"]).sum())
            rows += batch.rows
    return hashlib.sha256(weights.tobytes()).hexdigest()[:16], right / rows


def with_bias(image: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.concatenate([image.reshape(len(image), -1), np.ones((len(image), 1), np.float32)], 1)


def softmax(x: NDArray[np.float32]) -> NDArray[np.float32]:
    e = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


if __name__ == "__main__":
    digest, accuracy = train(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 20)
    print(f"weights {digest}, {accuracy:.1%} right")
