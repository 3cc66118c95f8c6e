"""The Python binding with batches on a GPU and in pinned slots, over the simulated CUDA, whose streams are behind the program. In
the place of torch: a module with a current stream, and copies that are queued in it.
    STOKER_LIBRARY=…/libstoker_sim.so python3 test_stoker_cuda.py"""

import ctypes
import gc
import os
import sys
import threading
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import stoker  # noqa: E402

lib = stoker._lib
ROWS, WIDTH, BATCHES, BEHIND_NS = 8, 500, 12, 3_000_000
PINNED = 1 << 2  # STK_TENSOR_PINNED
USED = b"used_dltensor"
PINNED_SLOTS = {"device": "cpu", "pin_memory": True, "prefetch": 2}
ON_GPU = {"device": "cuda:1", "device_prefetch": 2}


class Tensor(ctypes.Structure):
    """stk_tensor; of shape and strides only their room matters."""
    _fields_ = [("data", ctypes.c_void_p), ("storage", ctypes.c_void_p), ("device", ctypes.c_void_p), ("dtype", ctypes.c_int),
                ("ndim", ctypes.c_int32), ("flags", ctypes.c_uint32), ("rest", ctypes.c_char * 2040)]


def call(name, *arguments):
    return stoker._call(name, *arguments)


for name, arguments in {
    "stk_tensor_empty_pinned": [ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p] + [ctypes.c_void_p] * 2,
    "stk_tensor_from_dlpack": [ctypes.c_void_p] * 3,
    "stk_tensor_copy_on": [ctypes.c_void_p] * 3 + [ctypes.c_bool, ctypes.c_void_p],
    "stk_tensor_to_device_on": [ctypes.c_void_p] * 3 + [ctypes.c_bool] + [ctypes.c_void_p] * 2,
    "stk_stream_spin": [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p],
    "stk_stream_synchronize": [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p],
}.items():
    getattr(lib, name).argtypes = arguments
for name in ("stk_tensor_release", "stk_stream_native", "stk_dtype_find"):
    getattr(lib, name).argtypes = [ctypes.c_void_p]
lib.stk_stream_native.restype = ctypes.c_void_p
I32 = lib.stk_dtype_find(b"i32")
device = ctypes.c_void_p()
call("stk_device_find", b"cuda:1", ctypes.byref(device))


class Stream:
    """One that the library does not know: torch's."""

    def __init__(self):
        handle = ctypes.c_void_p()
        call("stk_stream_create", device, ctypes.byref(handle))
        self.handle, self.cuda_stream = handle.value, lib.stk_stream_native(handle)

    def read_later(self, capsule, early=False):
        """Behind some other work, as a kernel that reads the tensor would come. The tensor ends behind that, or early before."""
        address = stoker._python.PyCapsule_GetPointer(id(capsule), b"dltensor")
        tensor, seen = Tensor(), Tensor()
        call("stk_tensor_from_dlpack", address, ctypes.byref(tensor))
        stoker._python.PyCapsule_SetName(capsule, USED)
        tensor.flags |= 0 if tensor.device == device.value else PINNED  # DLPack does not say that it is
        used = Tensor.from_buffer_copy(tensor)
        used.storage = None
        if early:
            lib.stk_tensor_release(ctypes.byref(tensor))
        call("stk_tensor_empty_pinned", I32, 2, (ctypes.c_int64 * 2)(ROWS, WIDTH), device, ctypes.byref(seen))
        call("stk_stream_spin", self.handle, BEHIND_NS)
        if used.flags & PINNED:
            there = Tensor()
            call("stk_tensor_to_device_on", ctypes.byref(used), device, self.handle, True, ctypes.byref(there))
            call("stk_tensor_copy_on", ctypes.byref(seen), ctypes.byref(there), self.handle, True)
            lib.stk_tensor_release(ctypes.byref(there))
        else:
            call("stk_tensor_copy_on", ctypes.byref(seen), ctypes.byref(used), self.handle, True)
        if not early:
            lib.stk_tensor_release(ctypes.byref(tensor))
        return seen

    def bytes_of(self, seen):
        call("stk_stream_synchronize", self.handle, -1)
        return ctypes.string_at(seen.data, ROWS * WIDTH * 4)


stoker._python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
current = Stream()
torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 1,
                                   current_stream=lambda index: current)


def open_loader(**loader):
    return stoker.Loader({
        "dataset": {"fields": {"x": {"synthetic": {"count": ROWS * BATCHES, "shape": [WIDTH], "dtype": "i32",
                                                   "distinct": ROWS * BATCHES}}}},
        "loader": {"batch_size": ROWS, "order": "sequential", "num_workers": 2, "num_epochs": 1, **loader}})


def expected():
    with open_loader() as loader:
        return [ctypes.string_at(batch["x"]._export(None).contents.data, ROWS * WIDTH * 4) for batch in loader]


def check(streams, seen):
    for stream, tensors in zip(streams, seen):
        wrong = sum(stream.bytes_of(tensor) != right for tensor, right in zip(tensors, RIGHT))
        assert not wrong, f"{wrong} of {BATCHES} batches were read with another batch's bytes"
        for tensor in tensors:
            lib.stk_tensor_release(ctypes.byref(tensor))


RIGHT = expected()


def test_the_stream_of_an_export_guards_the_slot():
    """Two streams use each batch, without torch's current one."""
    sys.modules.pop("torch", None)
    streams, seen = [Stream(), Stream()], [[], []]
    with open_loader(**ON_GPU) as loader:
        assert loader.next()["x"].__dlpack_device__() == (2, 1)
        loader.seek(0)
        for batch in loader:
            for stream, tensors in zip(streams, seen):
                tensors.append(stream.read_later(batch["x"].__dlpack__(stream=stream.cuda_stream)))
    check(streams, seen)


def test_the_current_stream_guards_at_release():
    """The tensor ends at once; the work that comes behind reads the batch, which is held."""
    sys.modules["torch"] = torch
    seen = []
    with open_loader(**ON_GPU) as loader:
        for n, batch in enumerate(loader):
            kept = batch["x"].__dlpack__(stream=current.cuda_stream)
            if n % 2:
                loader.state_dict()  # ends the lease, not the use
            seen.append(current.read_later(kept, early=True))
    check([current], [seen])


def test_pinned_slots_wait_for_copies():
    sys.modules["torch"] = torch
    seen = []
    with open_loader(**PINNED_SLOTS) as loader:
        assert loader._pinned
        for batch in loader:
            seen.append(current.read_later(batch["x"].__dlpack__(), early=batch.step % 2))
    check([current], [seen])


def test_tensors_outlive_streams_and_loaders():
    sys.modules.pop("torch", None)
    stream = Stream()
    loader = open_loader(**ON_GPU)
    capsule = loader.next()["x"].__dlpack__(stream=stream.cuda_stream)
    loader.close()
    lib.stk_stream_destroy(ctypes.c_void_p(stream.handle))
    thread = threading.Thread(target=lambda taken: taken.clear(), args=([capsule],))
    del capsule
    thread.start()
    thread.join()
    gc.collect()


def test_stream_numbers():
    sys.modules.pop("torch", None)
    with open_loader(**ON_GPU) as loader:
        tensor = loader.next()["x"]
        for stream in (None, -1, 1, 2):
            tensor.__dlpack__(stream=stream)
        try:
            tensor.__dlpack__(stream=0)
            raise AssertionError("stream 0 was taken")
        except BufferError:
            pass


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print("ok", name)
