"""Tests of batch tensors: every dtype, both versions of DLPack, buffers, lifetimes, copies."""

import ctypes
import gc
import os
import queue
import tempfile
import threading
import time
import unittest
import warnings
from collections.abc import Mapping

import ml_dtypes
import numpy
import stoker
from support import IMAGES, Case, config, open_digits

# stoker's name, NumPy's dtype, DLPack's code and bits, and the oldest DLPack version that has the dtype.
DTYPES = [("bool", numpy.bool_, 6, 8, 0)] + [
    (name, getattr(numpy, name), code, numpy.dtype(name).itemsize * 8, 0)
    for code, kinds in ((0, ("int8", "int16", "int32", "int64")), (1, ("uint8", "uint16", "uint32", "uint64")),
                        (2, ("float16", "float32", "float64")), (5, ("complex64", "complex128"))) for name in kinds] + [
    ("bfloat16", ml_dtypes.bfloat16, 4, 16, 0), ("float8_e4m3fn", ml_dtypes.float8_e4m3fn, 10, 8, 1),
    ("float8_e5m2", ml_dtypes.float8_e5m2, 12, 8, 1)]

VALUES = numpy.array([[0, 1, 2, 3], [4, 5, 6, 7], [1, 0, 0, 2]])


class Layout(ctypes.Structure):
    """DLTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Layout)]


pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def one_field(dtype, to=None):
    """A loader of VALUES as this dtype, in one batch. The loader itself converts to the small floats."""
    kind = numpy.dtype(dtype)
    small = kind.type.__module__ == "ml_dtypes"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.npy")
        numpy.save(path, VALUES.astype(numpy.float32 if small else kind))
        return stoker.Loader({"x": stoker.Field(path, **({"dtype": dtype} if small else {}))}, batch_size=3, to=to)


class Dtypes(Case):
    def test_attributes_and_numpy(self):
        for name, kind, *_ in DTYPES:
            with self.subTest(name), one_field(kind) as loader:
                tensor = loader.next()["x"]
                self.assertEqual((tensor.dtype, tensor.shape, tensor.ndim, tensor.device, len(tensor), tensor.size),
                                 (name, (3, 4), 2, "cpu", 3, 12))
                self.assertEqual(tensor.nbytes, 12 * numpy.dtype(kind).itemsize)
                array = tensor.numpy()
                self.assertEqual(array.dtype, numpy.dtype(kind))
                self.assertIs(array.dtype.type, numpy.dtype(kind).type)
                self.assertTrue((array == VALUES.astype(kind)).all())
                self.assertTrue(array.flags.writeable)
                self.assertEqual(numpy.asarray(tensor).ctypes.data, array.ctypes.data)
                for copy in (True, None):
                    other = tensor.__array__(numpy.complex128, copy)
                    self.assertEqual(other.dtype, numpy.complex128)
                    self.assertTrue((other == VALUES.astype(kind).astype(numpy.complex128)).all())
                if name != "complex128":
                    self.assertRaises(ValueError, tensor.__array__, numpy.complex128, False)
                self.assertNotEqual(tensor.__array__(None, True).ctypes.data, array.ctypes.data)
                del array

    def test_buffers(self):
        for name, kind, *_ in DTYPES:
            with self.subTest(name), one_field(kind) as loader:
                tensor = loader.next()["x"]
                if kind.__module__ == "ml_dtypes":
                    self.assertRaises(BufferError, memoryview, tensor)
                else:
                    view = memoryview(tensor)
                    self.assertEqual((view.shape, view.readonly, view.tobytes()), ((3, 4), False, VALUES.astype(kind).tobytes()))
                    view.release()

    def test_dlpack_of_both_versions(self):
        for name, kind, code, bits, since in DTYPES:
            with self.subTest(name), one_field(kind) as loader:
                tensor = loader.next()["x"]
                self.assertEqual(tensor.__dlpack_device__(), (1, 0))
                new = tensor.__dlpack__(max_version=(1, 0))
                managed = Versioned.from_address(pointer(new, b"dltensor_versioned"))
                self.assertEqual((managed.major, managed.flags), (1, 0))
                layouts = [managed.tensor]
                if since:
                    self.assertRaises(BufferError, tensor.__dlpack__)
                    self.assertRaises(BufferError, tensor.__dlpack__, max_version=(0, 8))
                else:
                    old = tensor.__dlpack__()
                    layouts.append(Layout.from_address(pointer(old, b"dltensor")))
                for layout in layouts:
                    self.assertEqual((layout.code, layout.bits, layout.lanes, layout.ndim), (code, bits, 1, 2))
                    self.assertEqual(layout.shape[:2] + layout.strides[:2], [3, 4, 4, 1])
                    self.assertEqual(ctypes.string_at(layout.data, tensor.nbytes), VALUES.astype(kind).tobytes())

    def test_numpy_from_dlpack(self):
        for name, kind, *_ in DTYPES:
            with self.subTest(name), one_field(kind) as loader:
                tensor = loader.next()["x"]
                # NumPy does not have such a type: it raises its own error, and the slot must be free again
                if kind.__module__ == "ml_dtypes":
                    for _ in range(3 * loader.stats["slots"]):
                        self.assertRaises((BufferError, RuntimeError), numpy.from_dlpack, tensor)
                        del tensor
                        tensor = loader.next()["x"]
                else:
                    array = numpy.from_dlpack(tensor)
                    self.assertEqual(array.dtype, numpy.dtype(kind))
                    self.assertTrue((array == VALUES.astype(kind)).all())
                    array[0, 0] = 1
                    self.assertEqual(tensor.numpy()[0, 0], 1)
                    copied = numpy.from_dlpack(tensor, copy=True)
                    self.assertNotEqual(copied.ctypes.data, array.ctypes.data)
                    self.assertTrue((copied == array).all())

    def test_bool_is_one(self):
        with one_field(numpy.bool_, to="numpy") as loader:
            batch = loader.next()
            self.assertTrue((~batch["x"] == (VALUES == 0)).all())
            self.assertEqual((~batch.mask).tolist(), [False] * 3)


class Exports(Case):
    def test_tensors_that_cannot_be_exported_are_rejected(self):
        with open_digits(to=None) as loader:
            tensor = loader.next()["image"]
            self.assertRaises(BufferError, tensor.__dlpack__, dl_device=(2, 0))
            self.assertRaises(TypeError, tensor.__dlpack__, None)
            self.assertFalse(hasattr(tensor, "__cuda_array_interface__"))
            self.assertIsNotNone(tensor.__dlpack__(stream=None, max_version=(1, 1), dl_device=(1, 0), copy=False))

    def test_a_copy_keeps_no_slot(self):
        with open_digits(to=None) as loader:
            kept = [numpy.from_dlpack(loader.next()["image"], copy=True) for _ in range(3 * loader.stats["slots"])]
            self.assertEqual(loader.stats["slots_leased"], 0)
            capsule = loader.next()["image"].__dlpack__(max_version=(1, 0), copy=True)
            self.assertEqual(Versioned.from_address(pointer(capsule, b"dltensor_versioned")).flags, 2)
        self.assertFalse((kept[0] == kept[1]).all())

    def test_exports_keep_the_slot(self):
        with open_digits(to=None) as loader:
            slots = loader.stats["slots"]
            batch = loader.next()
            indices = batch.indices.numpy().copy()
            image, capsule = self.check_digits(batch), batch["label"].__dlpack__()
            del batch
            for _ in range(3 * slots):
                self.check_digits(loader.next())
            self.assertEqual(loader.stats["slots_leased"], 1)
            self.assertTrue((image == IMAGES[indices].astype(numpy.float32) * 0.5).all())
            del image
            self.assertEqual(loader.stats["slots_leased"], 1)
            del capsule
            self.assertEqual(loader.stats["slots_leased"], 0)
            image = self.check_digits(loader.next())
        del loader
        gc.collect()
        image[:] = 1  # the memory outlives the loader

    def test_release(self):
        with open_digits() as loader:
            batch = loader.next()
            image = batch["image"]
            batch.release()
            batch.release()
            self.fails(RuntimeError, "closed", batch.__getitem__, "image")
            self.fails(RuntimeError, "closed", lambda: batch.indices)
            self.assertEqual(loader.stats["slots_leased"], 1)
            del image
            self.assertEqual(loader.stats["slots_leased"], 0)

    def test_all_slots_held_is_an_error_at_once(self):
        with open_digits(prefetch=3, timeout="infinite") as loader:
            kept = [loader.next() for _ in range(3)]
            for _ in range(2):
                error = self.fails(RuntimeError, "busy", loader.next)
            for word in ("copy=True", "clone()", "prefetch"):
                self.assertIn(word, str(error))
            self.assertEqual(loader.state_dict()["step"], 3)
            kept.pop()
            self.assertEqual(loader.next().step, 3)
        with open_digits(prefetch=2, copy=True) as loader:
            kept = list(loader)
            self.assertEqual(len(kept), len(loader))
            for batch in kept:
                self.check_digits(batch)

    def test_held_slots_that_another_thread_releases(self):
        with open_digits(prefetch=3, timeout="infinite") as loader:
            kept = [loader.next() for _ in range(3)]
            go = threading.Event()
            thread = threading.Thread(target=lambda: (go.wait(10), time.sleep(0.5), kept.pop()))
            thread.start()
            self.fails(TimeoutError, "timeout", loader.next, timeout=0.2)
            go.set()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # on a slow machine, the wait may be long enough for the warning
                self.assertEqual(loader.next().step, 3)
            thread.join()

    def test_held_slots_that_no_other_thread_releases(self):
        """The other thread stands in for that of a notebook or a progress bar. The wait lasts until the timeout."""
        go = threading.Event()
        thread = threading.Thread(target=go.wait)
        thread.start()
        try:
            with open_digits(prefetch=3, timeout="1.5s") as loader:
                kept = [loader.next() for _ in range(3)]
                started = time.monotonic()
                with self.assertWarnsRegex(RuntimeWarning, r"all 3 slots .*clone\(\)") as caught:
                    self.fails(TimeoutError, "timeout", loader.next)
                self.assertGreaterEqual(time.monotonic() - started, 1.5)
                self.assertEqual(len(caught.warnings), 1)
                error = self.fails(TimeoutError, "timeout", loader.next, timeout=1.2)  # without a second warning
                for word in ("copy=True", "clone()", "prefetch"):
                    self.assertIn(word, str(error))
                self.assertEqual(loader.state_dict()["step"], 3)
                kept.pop()
                self.assertEqual(loader.next().step, 3)
        finally:
            go.set()
            thread.join()

    def test_held_slots_and_an_infinite_timeout(self):
        """The wait continues after the warning."""
        with open_digits(prefetch=3, timeout="infinite") as loader:
            kept = [loader.next() for _ in range(3)]
            warned = threading.Event()
            thread = threading.Thread(target=lambda: (warned.wait(60), kept.pop()))
            thread.start()
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.showwarning = lambda *_: warned.set()
                self.assertEqual(loader.next().step, 3)
            thread.join()
            self.assertTrue(warned.is_set())

    def test_clone(self):
        with open_digits() as loader:
            kept = [batch.clone() for batch in loader]
            self.assertEqual(loader.stats["slots_leased"], 0)
            self.assertEqual([batch.step for batch in kept], list(range(len(loader))))
            for batch in kept:
                self.check_digits(batch)
            again = kept[3].clone()
            self.assertTrue((again["image"] == kept[3]["image"]).all())
            self.assertNotEqual(again["image"].ctypes.data, kept[3]["image"].ctypes.data)
            self.assertEqual(again.indices.tolist(), kept[3].indices.tolist())
            self.assertNotEqual(again.indices.ctypes.data, kept[3].indices.ctypes.data)

    def test_a_moved_batch_has_no_clone(self):
        with open_digits() as loader:
            moved = loader.next()._with_values({}, {})
            self.assertRaisesRegex(ValueError, "moved", moved.clone)

    def test_dlpack_arguments_of_a_wrong_type(self):
        with open_digits(to=None) as loader:
            image = loader.next()["image"]
            self.assertRaises(TypeError, image.__dlpack__, max_version=[1, 1])
            self.assertRaises(TypeError, image.__dlpack__, dl_device=1)


class Batches(Case):
    def test_a_mapping(self):
        with open_digits() as loader:
            batch = loader.next()
            self.assertIsInstance(batch, Mapping)
            self.assertEqual(tuple(batch), loader.names)
            self.assertEqual(len(batch), 4)
            self.assertIn("image", batch)
            self.assertNotIn("words", batch)
            self.assertIsNone(batch.get("nothing"))
            self.assertEqual(list(dict(batch)), list(loader.names))
            self.assertIs(dict(batch)["image"], batch["image"])
            self.assertEqual([name for name, _ in batch.items()], list(loader.names))
            self.assertEqual(batch.keys() & {"image", "other"}, {"image"})
            self.assertEqual(len(list(batch.values())), 4)
            self.assertEqual(batch, batch)
            self.assertEqual(len({batch}), 1)
            with self.assertRaises(KeyError) as caught:
                batch["words"]
            self.assertIn('"words.values", "words.offsets"', str(caught.exception))
            self.assertRaises(KeyError, batch.__getitem__, 3)

    def test_numbers_of_rows(self):
        with open_digits(last_batch="pad") as loader:
            loader.seek(0, len(loader) - 1)
            batch = loader.next()
            self.assertEqual((batch.rows, batch.valid_rows, batch.device_slot), (64, 5, -1))
            self.assertEqual(batch.mask.tolist(), [True] * 5 + [False] * 59)
            self.assertEqual((batch.indices.dtype, batch.sources.dtype, batch.mask.dtype), (numpy.int64, numpy.int32, numpy.bool_))
            self.assertEqual(batch.sources.tolist(), [0] * 64)

    def test_the_host_device_is_waited_for(self):
        with open_digits(device="host", device_prefetch=3) as loader:
            for batch in loader:
                self.check_digits(batch)
                self.assertIn(batch.device_slot, range(3))
        with stoker.Loader(config(), device="host", device_prefetch=1) as loader:
            batch = loader.next()
            error = self.fails(RuntimeError, "busy", loader.next)
            self.assertIn("the only slot (loader.device_prefetch) is held by a batch", str(error))

    def test_a_consumer_behind_the_loop_on_the_host_device(self):
        """The loop drops each batch immediately; another thread reads its tensor later."""
        count, waiting, wrong = 200, queue.Queue(1), []
        field = stoker.Field(synthetic={"count": 8 * count, "shape": [500], "dtype": "i32", "distinct": 8 * count})
        options = {"batch_size": 8, "order": "sequential", "num_workers": 2, "to": "numpy"}
        with stoker.Loader({"x": field}, **options) as loader:
            right = [batch["x"].copy() for batch in loader]

        def consume():
            behind = []
            while len(wrong) < count:
                behind.append(waiting.get())
                if len(behind) == 2 or len(wrong) + len(behind) == count:
                    while behind:
                        wrong.append(not (behind.pop(0) == right[len(wrong)]).all())

        thread = threading.Thread(target=consume)
        thread.start()
        with stoker.Loader({"x": field}, device="host", device_prefetch=4, **options) as loader:
            for batch in loader:
                waiting.put(batch["x"])
                del batch
        thread.join()
        self.assertEqual((len(wrong), sum(wrong)), (count, 0))

    def test_channels_last_has_its_strides(self):
        field = stoker.Field(synthetic={"count": 8, "shape": [4, 5, 3], "dtype": "u8"}, source={"layout": "nhwc"},
                             layout="channels_last")
        with stoker.Loader({"image": field}, batch_size=8, to="numpy") as loader:
            array = loader.next()["image"]
            self.assertEqual((array.shape, array.strides), ((8, 3, 4, 5), (60, 1, 15, 3)))


if __name__ == "__main__":
    unittest.main()
