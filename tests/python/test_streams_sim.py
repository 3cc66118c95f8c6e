"""Tests of batches on a GPU and in pinned slots, on the simulated CUDA, whose streams run later than the program. A
module with a current stream and a from_dlpack that takes capsules stands in for torch; the copies are queued in
that stream."""

import ctypes
import gc
import sys
import threading
import types
import unittest

import stoker
from stoker import _core

lib = ctypes.CDLL(_core.__file__)
ROWS, WIDTH, BATCHES, BEHIND_NS = 8, 500, 200, 3_000_000
BYTES = ROWS * WIDTH * 4
PINNED, USED = 1 << 2, b"used_dltensor"  # STK_TENSOR_PINNED
PINNED_SLOTS = {"device": "cpu", "pin_memory": True, "prefetch": 3}
ON_GPU = {"device": "cuda:1", "device_prefetch": 2}


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("numbers", ctypes.c_int64 * 2), ("texts", ctypes.c_char * 448),
                ("message", ctypes.c_char * 640)]


class Tensor(ctypes.Structure):
    """stk_tensor; shape and strides are only reserved space."""
    _fields_ = [("data", ctypes.c_void_p), ("storage", ctypes.c_void_p), ("device", ctypes.c_void_p), ("dtype", ctypes.c_int),
                ("ndim", ctypes.c_int32), ("flags", ctypes.c_uint32), ("rest", ctypes.c_char * 2040)]


POINTER = ctypes.c_void_p
for name, arguments in {
    "stk_device_find": [ctypes.c_char_p, POINTER, POINTER],
    "stk_stream_create": [POINTER, POINTER, POINTER],
    "stk_tensor_empty_pinned": [ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), POINTER, POINTER, POINTER],
    "stk_tensor_from_dlpack": [POINTER] * 3,
    "stk_tensor_copy_on": [POINTER, POINTER, POINTER, ctypes.c_bool, POINTER],
    "stk_tensor_to_device_on": [POINTER, POINTER, POINTER, ctypes.c_bool, POINTER, POINTER],
    "stk_stream_spin": [POINTER, ctypes.c_int64, POINTER],
    "stk_stream_synchronize": [POINTER, ctypes.c_int64, POINTER],
    "stk_tensor_release": [POINTER], "stk_stream_native": [POINTER], "stk_stream_destroy": [POINTER],
    "stk_dtype_find": [ctypes.c_char_p],
}.items():
    getattr(lib, name).argtypes = arguments
lib.stk_stream_native.restype = POINTER
capsules = ctypes.pythonapi
capsules.PyCapsule_GetPointer.restype = POINTER
capsules.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsules.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


def call(function, *arguments):
    error = Error()
    if getattr(lib, function)(*arguments, ctypes.byref(error)) < 0:
        raise AssertionError(f"{function}: {error.message.decode()}")


def device_of(name):
    device = POINTER()
    call("stk_device_find", name, ctypes.byref(device))
    return device


DEVICE, I32 = device_of(b"cuda:1"), lib.stk_dtype_find(b"i32")


class Stream:
    """A stream that the package did not create, like torch's."""

    def __init__(self):
        handle = POINTER()
        call("stk_stream_create", DEVICE, ctypes.byref(handle))
        self.handle, self.cuda_stream = handle.value, lib.stk_stream_native(handle)

    def read_later(self, tensor, early=False):
        """Reads the tensor after other work in the stream, as a kernel would. Releases the tensor after queueing the
        read, or before it if `early`."""
        used, seen = Tensor.from_buffer_copy(tensor), Tensor()
        used.storage = None
        if early:
            lib.stk_tensor_release(ctypes.byref(tensor))
        call("stk_tensor_empty_pinned", I32, 2, (ctypes.c_int64 * 2)(ROWS, WIDTH), DEVICE, ctypes.byref(seen))
        call("stk_stream_spin", self.handle, BEHIND_NS)
        if used.flags & PINNED:
            there = Tensor()
            call("stk_tensor_to_device_on", ctypes.byref(used), DEVICE, self.handle, True, ctypes.byref(there))
            call("stk_tensor_copy_on", ctypes.byref(seen), ctypes.byref(there), self.handle, True)
            lib.stk_tensor_release(ctypes.byref(there))
        else:
            call("stk_tensor_copy_on", ctypes.byref(seen), ctypes.byref(used), self.handle, True)
        if not early:
            lib.stk_tensor_release(ctypes.byref(tensor))
        return seen

    def bytes_of(self, seen):
        call("stk_stream_synchronize", self.handle, -1)
        return ctypes.string_at(seen.data, BYTES)


def taken(capsule):
    """Imports the tensor of a capsule, as a consumer does."""
    tensor = Tensor()
    call("stk_tensor_from_dlpack", capsules.PyCapsule_GetPointer(capsule, b"dltensor"), ctypes.byref(tensor))
    capsules.PyCapsule_SetName(capsule, USED)
    tensor.flags |= 0 if tensor.device == DEVICE.value else PINNED  # DLPack does not say that memory is pinned
    return tensor


class TorchTensor:
    """What the stand-in's from_dlpack returns."""

    def __init__(self, capsule):
        self.tensor = taken(capsule)

    def __del__(self):
        lib.stk_tensor_release(ctypes.byref(self.tensor))


current = Stream()
torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 1, device_count=lambda: 2,
                                   current_stream=lambda index: current)
torch._C = types.SimpleNamespace(_from_dlpack=TorchTensor, _cuda_hasPrimaryContext=lambda index: index == 1)
torch.utils = types.ModuleType("torch.utils")
torch.utils.dlpack = types.ModuleType("torch.utils.dlpack")
torch.utils.dlpack.from_dlpack = TorchTensor


def open_loader(to=None, **loader):
    field = stoker.Field(synthetic={"count": ROWS * BATCHES, "shape": [WIDTH], "dtype": "i32", "distinct": ROWS * BATCHES})
    return stoker.Loader({"x": field}, to=to, batch_size=ROWS, order="sequential", num_workers=2, **loader)


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open_loader() as loader:
            cls.right = [memoryview(batch["x"]).tobytes() for batch in loader]

    def tearDown(self):
        for name in ("torch", "torch.utils", "torch.utils.dlpack"):
            sys.modules.pop(name, None)

    def use_torch(self):
        sys.modules.update({"torch": torch, "torch.utils": torch.utils, "torch.utils.dlpack": torch.utils.dlpack})

    def check(self, *streams_and_tensors):
        for stream, tensors in streams_and_tensors:
            self.assertEqual(len(tensors), BATCHES)
            wrong = sum(stream.bytes_of(tensor) != right for tensor, right in zip(tensors, self.right))
            self.assertEqual(wrong, 0, f"{wrong} of {BATCHES} batches were read with another batch's bytes")
            for tensor in tensors:
                lib.stk_tensor_release(ctypes.byref(tensor))

    def test_the_stream_of_an_export_guards_the_slot(self):
        """Two streams use each batch; torch is not loaded."""
        streams, seen = [Stream(), Stream()], [[], []]
        with open_loader(**ON_GPU) as loader:
            self.assertEqual(loader.next()["x"].__dlpack_device__(), (2, 1))
            loader.seek(0)
            for batch in loader:
                for stream, tensors in zip(streams, seen):
                    tensors.append(stream.read_later(taken(batch["x"].__dlpack__(stream=stream.cuda_stream))))
        self.check(*zip(streams, seen))

    def test_the_current_stream_guards_at_release(self):
        """The tensor is released before the read is queued, and the loop still holds the batch."""
        self.use_torch()
        seen = []
        with open_loader(**ON_GPU) as loader:
            for batch in loader:
                seen.append(current.read_later(taken(batch["x"].__dlpack__(stream=current.cuda_stream)), early=True))
        self.check((current, seen))

    def test_tensors_of_torch_are_guarded_by_their_deleters(self):
        """The loop keeps neither the batch nor the tensor: both are gone before the work that reads them starts."""
        self.use_torch()
        seen = []
        with open_loader(to="torch", **ON_GPU) as loader:
            for batch in loader:
                seen.append(current.read_later(batch["x"].tensor.__class__.from_buffer_copy(held(batch["x"].tensor))))
                del batch
        self.check((current, seen))

    def test_copies_in_a_stream_of_torch(self):
        self.use_torch()
        with open_loader(copy=True, **ON_GPU) as loader:
            copies = list(loader)
            seen = [current.read_later(taken(batch["x"].__dlpack__(stream=current.cuda_stream))) for batch in copies]
        self.check((current, seen))

    def test_pinned_slots_wait_for_copies(self):
        self.use_torch()
        seen = []
        with open_loader(**PINNED_SLOTS) as loader:
            for batch in loader:
                self.assertTrue(batch["x"].is_pinned)
                seen.append(current.read_later(taken(batch["x"].__dlpack__()), early=batch.step % 2))
        self.check((current, seen))

    def test_tensors_outlive_streams_and_loaders(self):
        stream = Stream()
        loader = open_loader(**ON_GPU)
        capsule = loader.next()["x"].__dlpack__(stream=stream.cuda_stream)
        loader.close()
        lib.stk_stream_destroy(stream.handle)
        thread = threading.Thread(target=lambda taken: taken.clear(), args=([capsule],))
        del capsule
        thread.start()
        thread.join()
        gc.collect()

    def test_cuda_is_the_current_device_of_torch(self):
        self.use_torch()
        with open_loader(device="cuda") as loader:
            self.assertEqual(loader.next()["x"].device, "cuda:1")

    def test_stream_numbers(self):
        with open_loader(**ON_GPU) as loader:
            tensor = loader.next()["x"]
            for stream in (None, -1, 1, 2):
                tensor.__dlpack__(stream=stream)
            for stream in (0, -2):
                self.assertRaises(BufferError, tensor.__dlpack__, stream=stream)

    def test_arrays_of_cuda(self):
        with open_loader(**ON_GPU) as loader:
            tensor = loader.next()["x"]
            interface = tensor.__cuda_array_interface__
            self.assertEqual((interface["shape"], interface["typestr"], interface["strides"], interface["version"]),
                             ((ROWS, WIDTH), "<i4", (WIDTH * 4, 4), 3))
            self.assertFalse(interface["data"][1])
            self.assertRaises(BufferError, memoryview, tensor)
            self.assertEqual(tensor.device, "cuda:1")
            self.assertRaises(BufferError, tensor.__dlpack__, dl_device=(1, 0))


def held(tensor):
    """The same tensor with an additional reference."""
    lib.stk_tensor_retain.argtypes = [POINTER]
    lib.stk_tensor_retain(ctypes.byref(tensor))
    return tensor


if __name__ == "__main__":
    unittest.main()
