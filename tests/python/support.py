"""Shared by the tests: the digits, and loaders of them."""

import os
import unittest

import numpy
import stoker

DATA = os.environ["STOKER_TEST_DATA"]
IMAGES = numpy.load(os.path.join(DATA, "digits_images.npy"))
LABELS = numpy.load(os.path.join(DATA, "digits_labels.npy"))
STEPS = -(-len(LABELS) // 64)

# A config whose source takes ten minutes per sample.
SLOW = {"dataset": {"fields": {"x": {"synthetic": {"count": 4, "shape": [2], "read_time": 600}}}},
        "loader": {"num_workers": 1, "close_timeout": 0.01}}


def config(**loader):
    return {
        "dataset": {"fields": {
            "image": {"path": os.path.join(DATA, "digits_images.npy"), "transforms": [{"scale": 0.5}]},
            "label": {"path": os.path.join(DATA, "digits_labels.npy")},
            "words": {"synthetic": {"count": len(LABELS), "shape": [7], "dtype": "u16", "min_length": 1}},
        }},
        "loader": {"batch_size": 64, "order": "random", "seed": 3, "num_workers": 2, **loader},
    }


def open_digits(to="numpy", **loader):
    return stoker.Loader(config(), to=to, **loader)


class Case(unittest.TestCase):
    def fails(self, kind, status, call, *arguments, **options):
        """Asserts that the call raises an exception of this kind and status, and returns the exception."""
        with self.assertRaises(kind) as caught:
            call(*arguments, **options)
        self.assertIsInstance(caught.exception, stoker.StokerError)
        self.assertEqual(caught.exception.status, status, caught.exception)
        return caught.exception

    def check_digits(self, batch):
        image = numpy.asarray(batch["image"])
        indices = numpy.asarray(batch.indices)
        self.assertEqual((image.dtype, image.shape), (numpy.float32, (batch.rows,) + IMAGES.shape[1:]))
        self.assertTrue((image == IMAGES[indices].astype(numpy.float32) * 0.5).all())
        self.assertTrue((numpy.asarray(batch["label"]) == LABELS[indices]).all())
        offsets = numpy.asarray(batch["words.offsets"])
        self.assertEqual((offsets[-1], len(offsets)), (len(numpy.asarray(batch["words.values"])), batch.rows + 1))
        return image
