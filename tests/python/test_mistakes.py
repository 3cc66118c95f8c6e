"""Tests of typical mistakes of new users: each raises an exception with the right status and built-in type."""

import copy
import os
import pickle
import tempfile
import traceback
import unittest
from unittest import mock

import numpy
import stoker
from support import DATA, IMAGES, LABELS, Case, config, open_digits

DIGITS = os.path.join(DATA, "digits_images.npy")


class Map:
    """A data set as users of torch write it."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return index


class Mistakes(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf8") as out:
            out.write(text)
        return path

    def test_of_a_loader(self):
        with open_digits() as loader:
            self.fails(ValueError, "bad_arg", loader.next, timeout=-1)
            self.fails(TypeError, "unsupported", loader.__getitem__, 0)
            self.fails(KeyError, "not_found", loader.origins, loader.next(), "nothing")
            self.assertIsNone(loader.next().get("nothing"))
        self.fails(TypeError, "config", stoker.Loader, config(), btch_size=3)
        self.fails(TypeError, "config", stoker.Field, "x", transform=[])
        with open_digits() as loader, self.assertRaisesRegex(AttributeError, "pass batch_size="):
            loader.batch_size = 3

    def test_options_in_the_wrong_place(self):
        for call, name, place in ((lambda **options: stoker.Loader({"x": DIGITS}, **options), "transforms", "stoker.Field"),
                                  (lambda **options: stoker.Field(DIGITS, **options), "batch_size", "stoker.Loader")):
            self.assertIn(f"it is an option of {place}", str(self.fails(TypeError, "config", call, **{name: 1})))
        self.fails(TypeError, "config", stoker.Dataset, DIGITS)

    def test_sets_that_are_no_list(self):
        for wrong in ("loader.seed=1", {"loader.seed": 1}, None, [1]):
            for call in (stoker.Loader, stoker.prep):
                self.assertIn('sets=["', str(self.fails(TypeError, "config", call, {"x": DIGITS}, sets=wrong)))

    def test_a_job_without_a_data_set(self):
        for job in ({"datset": {"fields": {}}}, {"image": DIGITS}):
            error = self.fails(ValueError, "config", stoker.prep, job)
            self.assertNotIn("loader", str(error))
            self.assertIn("dataset", str(error))

    def test_a_transform_that_was_not_called(self):
        for transforms in (stoker.scale, [stoker.scale]):
            error = self.fails(TypeError, "config", lambda: stoker.Loader({"x": stoker.Field(DIGITS, transforms=transforms)}))
            self.assertIn("stoker.scale(…)", str(error))
        with self.assertRaisesRegex(TypeError, "found 2: use keyword arguments"):
            stoker.normalize([0.5], [0.5])

    def test_a_misspelt_dtype_of_a_transform_is_named(self):
        wrong = stoker.transform(lambda image: image, dtype="flaot32")
        error = self.fails(ValueError, "config", stoker.Loader, {"x": stoker.Field(DIGITS, transforms=wrong)})
        self.assertIn("dtype: found flaot32", str(error))

    def test_the_config_that_pickle_recommends(self):
        with open_digits(batch_size=32) as loader:
            with self.assertRaisesRegex(TypeError, r"stoker\.Loader\(\*\*config\)"):
                pickle.dumps(loader)
            with stoker.Loader(**pickle.loads(pickle.dumps(loader.config()))) as other:
                self.assertTrue((other.next()["label"] == loader.next()["label"]).all())

    def test_data_instead_of_paths(self):
        for wrong in (IMAGES, Map()):
            self.fails(TypeError, "unsupported", stoker.Loader, wrong)
            self.fails(TypeError, "unsupported", stoker.Loader, {"x": wrong})
        os.mkdir(os.path.join(self.folder, "train"))
        self.write("train/a.jpg", "")
        self.fails(ValueError, "config", stoker.Loader, os.path.join(self.folder, "train"))
        self.assertEqual(self.fails(ValueError, "config", stoker.Loader, {"x": DIGITS}, batch_size=-2).file, "")
        error = self.fails(ValueError, "config", stoker.Loader, DIGITS)
        self.assertIn(repr(DIGITS), str(error))
        self.fails(ValueError, "config", stoker.Loader, self.write("wrong.yaml", "dataset: [\n"))

    def test_the_key_of_a_value_of_a_wrong_type_is_named(self):
        for call, key in ((lambda: stoker.Loader({"x": "x.npy"}, seed=object()), "loader.seed"),
                          (lambda: stoker.Loader({"x": stoker.Field("x.npy", transforms=[{"resize": object()}])}), "x.transforms.resize")):
            error = self.fails(TypeError, "config", call)
            self.assertTrue(str(error).startswith(key + ": found object"), error)

    def test_a_step_that_is_not_in_a_list_in_a_config(self):
        fields = {"x": {"path": DIGITS, "transforms": {"scale": 2}}}
        error = self.fails(ValueError, "config", stoker.Loader, {"dataset": {"fields": fields}})
        self.assertEqual((error.found, error.expected), ("a map", "a list of operations: [{normalize: imagenet}]"))

    def test_methods_of_arrays_that_a_tensor_lacks(self):
        with open_digits(to=None) as loader:
            image = loader.next()["image"]
            with self.assertRaisesRegex(AttributeError, "no attribute 'mean': use its numpy\\(\\)"):
                image.mean()
            with self.assertRaisesRegex(TypeError, "cannot be indexed: use its numpy\\(\\)"):
                image[0]
            self.assertRaises(TypeError, iter, image)

    def test_lists_of_something_else(self):
        for name, wrong in (("indices", numpy.arange(len(LABELS)) < 5), ("indices", [1.5]), ("indices", [[1, 2]]), ("indices", [1 << 70]),
                            ("weights", ["a"])):
            error = self.fails(TypeError, "config", stoker.Loader, {"x": DIGITS}, **{name: wrong})
            self.assertTrue(str(error).startswith(f"loader.{name}: "), error)
        self.fails(ValueError, "config", stoker.Loader, {"x": DIGITS}, indices=5)

    def test_an_option_is_named_without_a_command_line(self):
        path = self.write("one.yaml", f"dataset: {{fields: {{x: {{path: {DIGITS}}}}}}}\n")
        for given in ({"batch_size": 0}, {"sets": ["loader.batch_size=0"]}):
            for source in (path, config(), {"x": DIGITS}):
                error = self.fails(ValueError, "config", stoker.Loader, source, **given)
                self.assertRegex(str(error), r"^loader\.batch_size: found 0, expected 1 to ")
                self.assertEqual((error.file, error.found), ("", "0"))
        self.assertNotIn("--set", str(self.fails(ValueError, "config", stoker.Loader, path, shuffle=True, order="block")))

    def test_options_of_torch(self):
        for name in ("batch_sampler", "collate_fn", "generator", "multiprocessing_context", "persistent_workers", "pin_memory_device",
                     "prefetch_factor", "sampler", "worker_init_fn"):
            error = self.fails(TypeError, "config", stoker.Loader, config(), **{name: None})
            self.assertIn(f"torch's option '{name}'", str(error))

    def test_transforms_of_torchvision(self):
        class RandomResizedCrop:
            __module__ = "torchvision.transforms.transforms"

            def __call__(self, image):
                return image

        class Compose(RandomResizedCrop):
            __module__ = "torchvision.transforms.v2._container"

        for found, use in ((RandomResizedCrop(), "use stoker.random_resized_crop"), (Compose(), "use a transform of stoker")):
            error = self.fails(TypeError, "unsupported", stoker.Loader, {"x": stoker.Field(DIGITS, transforms=[found])})
            self.assertIn(use, str(error))

    def test_a_function_for_images_of_different_sizes(self):
        folder = os.path.join(DATA, "photos")
        error = self.fails(ValueError, "config", stoker.Loader, {"image": stoker.Field(folder, transforms=[lambda image: image])})
        self.assertIn("does not determine the `shape`", str(error))
        corner = stoker.transform(lambda image: image[:8, :4], shape=(8, 4, 3))
        with stoker.Loader({"image": stoker.Field(folder, transforms=[corner])}, batch_size=2, to="numpy") as loader:
            self.assertEqual(loader.next()["image"].shape, (2, 8, 4, 3))

    def test_a_field_named_like_no_member(self):
        error = self.fails(ValueError, "config", stoker.Loader, {"picture": os.path.join(DATA, "photos")})
        self.assertEqual(error.expected, "a field with one of these names, or source: {name: …}")

    def test_states_of_something_else(self):
        with open_digits() as loader:
            for wrong in ({}, None, [], {"state": {}, "param_groups": []}):
                self.assertIn("stoker_state", str(self.fails(ValueError, "bad_arg", loader.load_state_dict, wrong)))

    def test_columns_of_texts(self):
        table = self.write("t.csv", "path,kind\na.png,cat\nb.png,dog\n")
        for name, dtype, remedy in (("kind", "int64", "classes"), ("path", "float32", "files: images")):
            with self.subTest(name):
                error = self.fails(ValueError, "mismatch", stoker.Loader, {"x": stoker.Field(table, name=name, dtype=dtype)})
                self.assertEqual((error.expected, error.record), ("a number", 0))
                self.assertIn(f"expected {error.expected}", str(error))
                self.assertIn(remedy, str(error))
        with stoker.Loader({"x": stoker.Field(table, name="kind", dtype="int64", classes="sorted")}, to="numpy", batch_size=2) as loader:
            self.assertEqual(loader.next()["x"].tolist(), [0, 1])

    def test_files(self):
        missing = os.path.join(self.folder, "none.npy")
        cut = os.path.join(self.folder, "cut.npy")
        with open(DIGITS, "rb") as whole, open(cut, "wb") as out:
            out.write(whole.read(1000))
        for call in (stoker.inspect, stoker.verify):
            self.fails(FileNotFoundError, "not_found", call, missing)
            self.assertEqual(self.fails(ValueError, "truncated", call, cut).file, cut)
        two = os.path.join(self.folder, "two.npz")
        numpy.savez(two, a=LABELS, b=LABELS)
        file = stoker.open(two)
        for wrong in ("c", 5, slice(2)):
            self.assertIn("'a', 'b'", str(self.fails(KeyError, "not_found", file.__getitem__, wrong)))
        self.fails(KeyError, "not_found", file.numpy)
        self.assertFalse(hasattr(file, "shape"))
        self.assertEqual((len(file), list(file)), (2, ["a", "b"]))

    def test_a_file_of_one_array_is_its_member(self):
        file = stoker.open(DIGITS)
        self.assertTrue((file[5] == IMAGES[5]).all())
        self.assertTrue((file[2:4] == IMAGES[2:4]).all())
        self.assertTrue((file.numpy() == IMAGES).all())
        self.assertTrue((numpy.asarray(file) == IMAGES).all())
        self.fails(KeyError, "not_found", file.__getitem__, "image")
        self.assertEqual((len(file), file.shape, file.ndim, file.dtype), (len(IMAGES), IMAGES.shape, 3, "uint8"))
        self.assertEqual(sum(int(image.sum()) for image in file), int(IMAGES.sum()))
        for index in ([1, 2], numpy.array([1, 2]), LABELS == 3, numpy.array([5]), (5, slice(2)), None, True, Ellipsis):
            self.assertTrue(numpy.array_equal(file[index], IMAGES[index]), index)
        self.assertEqual(list(dict(file)), [""])
        labels = stoker.open(os.path.join(DATA, "digits_labels.npy"))
        self.assertEqual((labels[3] + 1, list(labels)), (LABELS[3] + 1, LABELS.tolist()))
        with self.assertRaisesRegex(IndexError, "found index -1798, but there are 1797 samples"):
            labels[-1798]
        self.assertFalse(hasattr(file, "nothing"))

    def test_a_file_of_a_scalar(self):
        path = os.path.join(self.folder, "scalar.npy")
        numpy.save(path, numpy.float32(3.5))
        file = stoker.open(path)
        for one in (file, file[""]):
            self.assertTrue(one)
            self.assertEqual((one.shape, one[()], numpy.asarray(one)), ((), 3.5, 3.5))
            self.assertTrue(3.5 in one and 3 not in one)
            self.assertRaises(TypeError, len, one)
            self.assertRaises(TypeError, list, one)
            self.assertRaises(IndexError, lambda: one[0])

    def test_what_numpy_expects_of_an_array(self):
        file = stoker.open(DIGITS)
        for one in (file, file[""]):
            self.assertTrue(16 in one and 17 not in one)
            self.assertEqual(numpy.asarray(one, dtype="float64").dtype, numpy.float64)
            self.assertTrue(numpy.shares_memory(numpy.asarray(one), numpy.array(one, copy=False)))
            self.assertTrue(numpy.array(one).flags.writeable)
            self.assertRaises(ValueError, numpy.array, one, dtype="float64", copy=False)
            for call in (pickle.dumps, copy.copy):
                self.assertRaisesRegex(TypeError, "pass the path", call, one)
            with self.assertRaisesRegex(AttributeError, r"'mean': use its numpy\(\)"):
                one.mean()

    def test_asarray_before_numpy_2(self):
        def array(value, dtype=None, copy=True, array=numpy.array):
            if copy is None:
                raise ValueError("NoneType copy mode not allowed.")
            return array(value, dtype, copy=copy)

        with mock.patch("numpy.array", array):
            self.assertTrue((numpy.asarray(stoker.open(DIGITS)) == IMAGES).all())

    def test_a_file_that_was_closed(self):
        def is_mapped():
            with open("/proc/self/maps", encoding="utf8") as maps:
                return path in maps.read()
        path = os.path.join(os.path.realpath(self.folder), "x.npy")
        numpy.save(path, IMAGES)
        with stoker.open(path) as file:
            image, array = file[5], file.numpy()
        file.close()
        for call in (lambda: file[5], lambda: len(file), lambda: list(file), lambda: "" in file, lambda: file.shape, file.numpy, file.keys,
                     lambda: file.sample_name(0)):
            self.assertEqual(self.fails(RuntimeError, "closed", call).file, path)
        self.assertIn("closed", repr(file))
        self.assertTrue((image == IMAGES[5]).all() and (array == IMAGES).all() and is_mapped())
        del array
        self.assertFalse(is_mapped())

    def test_exceptions_of_transforms_keep_their_traceback(self):
        class Broken(Exception):
            pass

        def inner(image):
            raise Broken("this image")

        def outer(image):
            inner(image)
            return image
        for workers in (0, 2):
            with stoker.Loader({"x": stoker.Field(DIGITS, transforms=[outer])}, batch_size=4, num_workers=workers) as loader:
                cause = self.fails(ValueError, "bad_value", loader.next).__cause__
                self.assertIsInstance(cause, Broken)
                names = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
                self.assertEqual(names[-2:], ["outer", "inner"])


if __name__ == "__main__":
    unittest.main()
