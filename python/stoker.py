"""stoker.py: stoker's loader in Python, one file over the installed library, by ctypes.

    import stoker, torch

    with stoker.Loader("train.yaml", sets=["loader.num_workers=4"]) as loader:
        for epoch in range(loader.epoch, 10):
            for batch in loader:                       # the rest of the epoch
                image = torch.from_dlpack(batch["image"])
                ...
                if time_to_save:
                    torch.save({"model": ..., "data": loader.state_dict()}, "checkpoint.pt")

A batch holds its tensors, which are exported as DLPack without a copy: numpy.from_dlpack, torch.from_dlpack and every other
library that knows DLPack take batch["image"]. Their memory stays while anything made of it lives; the loader has a fixed
number of slots (loader.prefetch), so tensors that are kept should be copied.

A batch counts as used, for state_dict, as soon as it was handed out: what a loop saves while it works on a batch goes on
behind that batch.

With `device: cuda` batches lie on the GPU, and nothing waits on the host: the stream that __dlpack__ is given (torch gives its
current one) comes behind the copy, and the slot is filled again behind what that stream holds when the tensor is deleted and behind
torch's current stream when the batch is released. The same holds for copies with non_blocking=True from the slots of
`pin_memory: true`. Work queued in other streams needs an order with the current one first (wait_stream). The host device is
refused, since DLPack takes its memory for the processor's.

The library is found as STOKER_LIBRARY says, else as the system finds libstoker.
"""

import ctypes
import ctypes.util
import json
import os
import sys
import threading
import time

__all__ = ["Loader", "Batch", "Tensor", "StokerError", "version"]

OK, END, TIMEOUT, UNSUPPORTED = 0, 1, -53, -1
_STATE_MAX = 256
_SLICE_NS = 200_000_000  # how late Ctrl-C may be noticed while nothing comes


class _Error(ctypes.Structure):
    _fields_ = [
        ("status", ctypes.c_int),
        ("record", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("file", ctypes.c_char * 256),
        ("found", ctypes.c_char * 96),
        ("expected", ctypes.c_char * 96),
        ("message", ctypes.c_char * 640),
    ]


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Managed(ctypes.Structure):
    """DLManagedTensor of DLPack 0.6."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [
    ("data", ctypes.c_void_p),
    ("device", _Device),
    ("ndim", ctypes.c_int32),
    ("dtype", _DType),
    ("shape", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64),
    ("context", ctypes.c_void_p),
    ("deleter", _Deleter),
]


def _load():
    path = os.environ.get("STOKER_LIBRARY") or ctypes.util.find_library("stoker") or "libstoker.so.0"
    lib = ctypes.CDLL(path)
    error, handle, text = ctypes.POINTER(_Error), ctypes.c_void_p, ctypes.c_char_p
    texts, number, out = ctypes.POINTER(ctypes.c_char_p), ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p)

    def declare(name, result, *arguments):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments

    declare("stk_version", text)
    declare("stk_status_name", text, ctypes.c_int)
    declare("stk_text_free", None, ctypes.c_void_p)
    declare("stk_loader_open_file", ctypes.c_int, text, texts, ctypes.c_int, out, error)
    declare("stk_loader_open_text", ctypes.c_int, text, text, texts, ctypes.c_int, out, error)
    declare("stk_loader_destroy", None, handle)
    declare("stk_loader_cancel", None, handle)
    declare("stk_loader_next_on", ctypes.c_int, handle, handle, number, out, error)
    declare("stk_loader_samples", number, handle)
    declare("stk_loader_steps_per_epoch", number, handle)
    declare("stk_loader_options_json", text, handle)
    declare("stk_loader_note_count", ctypes.c_int, handle)
    declare("stk_loader_note", text, handle, ctypes.c_int)
    declare("stk_loader_tensor_count", ctypes.c_int, handle)
    declare("stk_loader_tensor_name", ctypes.c_int, handle, ctypes.c_int, text, ctypes.c_int, error)
    declare("stk_loader_save", ctypes.c_int, handle, ctypes.c_char_p, number, ctypes.POINTER(number), error)
    declare("stk_loader_restore", ctypes.c_int, handle, ctypes.c_char_p, number, error)
    declare("stk_loader_seek", ctypes.c_int, handle, number, number, error)
    declare("stk_state_json", ctypes.c_void_p, ctypes.c_char_p, number, error)
    declare("stk_device_find", ctypes.c_int, text, out, error)
    declare("stk_stream_create", ctypes.c_int, handle, out, error)
    declare("stk_stream_wrap", ctypes.c_int, handle, handle, out, error)
    declare("stk_stream_destroy", None, handle)
    declare("stk_batch_release_on", None, handle, handle)
    declare("stk_batch_dlpack_on", ctypes.c_int, handle, text, handle, ctypes.POINTER(ctypes.POINTER(_Managed)), error)
    for name in ("rows", "valid_rows", "epoch", "step", "global_step"):
        declare("stk_batch_" + name, number, handle)
    declare("stk_batch_last_of_epoch", ctypes.c_bool, handle)
    declare("stk_batch_indices", ctypes.POINTER(number), handle)
    declare("stk_batch_mask", ctypes.POINTER(ctypes.c_uint8), handle)
    return lib


_lib = _load()
_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_IsValid.restype = ctypes.c_int
_python.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_NAME = b"dltensor"


def version():
    return _lib.stk_version().decode()


class StokerError(RuntimeError):
    """status is "corrupt", "timeout", …; the rest as in stk_error, -1 and "" where not known."""

    def __init__(self, status, error):
        super().__init__(error.message.decode(errors="replace"))
        self.status = _lib.stk_status_name(status).decode()
        self.record, self.offset = error.record, error.offset
        self.file, self.found, self.expected = (
            getattr(error, name).decode(errors="replace") for name in ("file", "found", "expected"))


def _call(name, *arguments):
    error = _Error()
    status = getattr(_lib, name)(*arguments, ctypes.byref(error))
    if status < 0:
        raise StokerError(status, error)
    return status


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _drop_capsule(capsule):
    """A capsule that nobody took: whoever takes one renames it."""
    if _python.PyCapsule_IsValid(capsule, _NAME):
        managed = ctypes.cast(_python.PyCapsule_GetPointer(capsule, _NAME), ctypes.POINTER(_Managed))
        managed.contents.deleter(managed)


_CPU, _CUDA = 1, 2  # kinds of devices of DLPack
_LEGACY, _PER_THREAD = 1, 2  # streams, as __dlpack__ numbers them


class _Streams:
    """Streams of the loader's users, as handles of the library."""

    def __init__(self, device):
        """device: "cuda:1", or None for batches in ordinary memory."""
        self.index = int(device.partition(":")[2]) if device else None
        self._devices, self._handles = {}, {}
        self.own = self._make("stk_stream_create", self.index) if device else None  # batches are asked for in it

    def _make(self, function, index, *arguments):
        if index not in self._devices:
            device = ctypes.c_void_p()
            _call("stk_device_find", f"cuda:{index}".encode(), ctypes.byref(device))
            self._devices[index] = device.value
        stream = ctypes.c_void_p()
        _call(function, self._devices[index], *arguments, ctypes.byref(stream))
        return stream.value

    def of(self, native, index=None):
        """A cudaStream_t, or one of the numbers above. What is per thread is another stream in each thread."""
        index = self.index if index is None else index
        key = index, native, threading.get_ident() if native == _PER_THREAD else 0
        if key not in self._handles:
            self._handles[key] = self._make("stk_stream_wrap", index, native)
        return self._handles[key]

    def of_torch(self):
        """torch's current stream on the device, None where it uses no GPU."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return None
        index = torch.cuda.current_device() if self.index is None else self.index
        return self.of(torch.cuda.current_stream(index).cuda_stream or _LEGACY, index)

    def close(self):
        for stream in [*self._handles.values(), self.own]:
            _lib.stk_stream_destroy(stream)
        self._handles, self.own = {}, None


class Tensor:
    """One tensor of a batch, for from_dlpack; any number of times, while the batch is not released."""

    def __init__(self, batch, name):
        self._batch, self.name = batch, name

    def _export(self, stream):
        managed = ctypes.POINTER(_Managed)()
        _call("stk_batch_dlpack_on", self._batch._get(), self.name.encode(), stream, ctypes.byref(managed))
        return managed

    def __dlpack_device__(self):
        index = self._batch._loader._streams.index
        return (_CPU, 0) if index is None else (_CUDA, index)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        # A copy, or another device, is for the caller to make.
        if copy:
            raise BufferError("a tensor of a batch is exported without a copy")
        streams = self._batch._loader._streams
        if streams.index is None:  # torch may queue copies from it
            used = streams.of_torch() if self._batch._loader._pinned else None
        elif stream == 0:
            raise BufferError("__dlpack__: found stream 0, expected 1 (legacy), 2 (per thread) or a cudaStream_t")
        else:
            used = streams.own if stream == -1 else streams.of(_LEGACY if stream is None else stream)
        managed = self._export(used)
        address = ctypes.cast(managed, ctypes.c_void_p)
        return _python.PyCapsule_New(address, _NAME, ctypes.cast(_drop_capsule, ctypes.c_void_p))

    def __array__(self, dtype=None, copy=None):
        import numpy
        array = numpy.from_dlpack(self)
        return numpy.array(array, dtype=dtype) if copy or dtype is not None else array


class Batch:
    """A mapping of names to tensors. It is valid until the loader is asked for the next one or release is called; what
    was exported from it stays."""

    def __init__(self, loader, handle):
        self._loader, self._handle, self._leased, self._kept = loader, handle, True, None
        self.rows, self.valid_rows = _lib.stk_batch_rows(handle), _lib.stk_batch_valid_rows(handle)
        self.epoch, self.step = _lib.stk_batch_epoch(handle), _lib.stk_batch_step(handle)
        self.global_step = _lib.stk_batch_global_step(handle)
        self.last_of_epoch = _lib.stk_batch_last_of_epoch(handle)
        self.indices = _lib.stk_batch_indices(handle)[:self.rows]
        self.mask = _lib.stk_batch_mask(handle)[:self.rows]

    def _get(self):
        if self._handle is None:
            raise ValueError("the batch has been released")
        return self._handle

    def __getitem__(self, name):
        if name not in self._loader.names:
            raise KeyError(name)
        self._get()
        return Tensor(self, name)

    def __iter__(self):
        return iter(self._loader.names)

    def __len__(self):
        return len(self._loader.names)

    def keys(self):
        return list(self._loader.names)

    def items(self):
        return [(name, self[name]) for name in self._loader.names]

    def _end_lease(self):
        """The loader's position goes behind the batch; an export keeps it alive for more of them."""
        if self._handle is None or not self._leased:
            return
        self._kept = Tensor(self, self._loader.names[0])._export(None)
        _lib.stk_batch_release_on(self._handle, None)
        self._leased = False

    def release(self):
        if self._handle is None:
            return
        stream = self._loader._stream_of_work()
        if self._leased:
            _lib.stk_batch_release_on(self._handle, stream)
        else:
            if stream is not None:  # an export for it guards as the lease would have done
                last = Tensor(self, self._loader.names[0])._export(stream)
                last.contents.deleter(last)
            self._kept.contents.deleter(self._kept)
        self._handle = None

    def __del__(self):
        self.release()


class Loader:
    """config: the path of a config file, or a dict with the sections dataset and loader (sizes in bytes, times in seconds, as
    numbers). sets: assignments on top of it, "loader.batch_size=256". Iterating gives the rest of the epoch; after a break it goes on where it was."""

    def __init__(self, config, sets=(), base_dir=None):
        handle = ctypes.c_void_p()
        self._handle, self._batch, self._streams, self._pinned = None, None, None, False
        texts = (ctypes.c_char_p * max(len(sets), 1))(*[s.encode() for s in sets])
        if isinstance(config, dict):
            text = json.dumps(config).replace("$", "$$").encode()
            base = os.fsencode(base_dir) if base_dir is not None else None
            _call("stk_loader_open_text", text, base, texts, len(sets), ctypes.byref(handle))
        else:
            _call("stk_loader_open_file", os.fsencode(config), texts, len(sets), ctypes.byref(handle))
        self._handle = handle.value
        self._streams = _Streams(self._device())
        self.samples = _lib.stk_loader_samples(self._handle)
        self.steps_per_epoch = _lib.stk_loader_steps_per_epoch(self._handle)
        self.options = json.loads(_lib.stk_loader_options_json(self._handle))
        self.names = [self._name(i) for i in range(_lib.stk_loader_tensor_count(self._handle))]
        self._timeout = self.options["loader"]["timeout_ns"]

    def _device(self):
        """Where the batches are: "cuda:1"; None: in ordinary memory."""
        plan = json.loads(_lib.stk_loader_options_json(self._handle))["plan"]
        device = plan.get("device")
        self._pinned = device is None and plan["pinned_slots"] > 0
        if device is not None and not device.startswith("cuda:"):
            self.close()
            raise StokerError(UNSUPPORTED, _Error(
                record=-1, offset=-1, found=device.encode(), expected=b"cpu or cuda",
                message=f"loader.device: found {device}, expected cpu or cuda: DLPack takes the memory of a {device} device "
                        "for the processor's, which may read it before its copy is done".encode()))
        return device

    def _stream_of_work(self):
        """Where torch may have queued work on a batch; None: nowhere."""
        return self._streams.of_torch() if self._pinned or self._streams.index is not None else None

    def _get(self):
        if self._handle is None:
            raise ValueError("the loader is closed")
        return self._handle

    def _name(self, i):
        name = ctypes.create_string_buffer(512)
        _call("stk_loader_tensor_name", self._handle, i, name, len(name))
        return name.value.decode()

    @property
    def notes(self):
        return [_lib.stk_loader_note(self._get(), i).decode() for i in range(_lib.stk_loader_note_count(self._get()))]

    def classes(self, field):
        """The names of the field's classes in the order of their numbers, or None."""
        return self.options["fields"][field].get("classes")

    def next(self, timeout=None):
        """The next batch, or None after the last epoch. StokerError with status "timeout": ask again."""
        self.release()
        limit = self._timeout if timeout is None else int(timeout * 1e9)
        start, batch, error = time.monotonic_ns(), ctypes.c_void_p(), _Error()
        while True:
            left = _SLICE_NS if limit < 0 else max(0, limit - (time.monotonic_ns() - start))
            status = _lib.stk_loader_next_on(self._get(), self._streams.own, min(left, _SLICE_NS), ctypes.byref(batch),
                                             ctypes.byref(error))
            if status != TIMEOUT or left <= _SLICE_NS and limit >= 0:
                break
        if status == END:
            return None
        if status < 0:
            raise StokerError(status, error)
        self._batch = Batch(self, batch.value)
        return self._batch

    def release(self):
        """Ends the batch that was handed out last."""
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.release()

    def __iter__(self):
        while True:
            batch = self.next()
            if batch is None:
                return
            last = batch.last_of_epoch
            yield batch
            if last:
                return

    def __len__(self):
        return self.steps_per_epoch

    def state_dict(self):
        """The position behind the batch that was handed out last, whose tensors stay as they are."""
        if self._batch is not None:
            self._batch._end_lease()
        state, size = ctypes.create_string_buffer(_STATE_MAX), ctypes.c_int64()
        _call("stk_loader_save", self._get(), state, _STATE_MAX, ctypes.byref(size))
        error = _Error()
        address = _lib.stk_state_json(state, size.value, ctypes.byref(error))
        if not address:
            raise StokerError(error.status, error)
        try:
            return json.loads(ctypes.string_at(address))
        finally:
            _lib.stk_text_free(address)

    def load_state_dict(self, state):
        self.release()
        text = json.dumps(state).encode()
        _call("stk_loader_restore", self._get(), text, len(text))

    def seek(self, epoch, step=0):
        self.release()
        _call("stk_loader_seek", self._get(), epoch, step)

    @property
    def epoch(self):
        """Of the next batch."""
        return self.state_dict()["epoch"] if self._batch is None else self._batch.epoch + self._batch.last_of_epoch

    def cancel(self):
        """next raises with status "cancelled"; for other threads and handlers of signals."""
        _lib.stk_loader_cancel(self._handle)

    def close(self):
        self.release()
        handle, self._handle = self._handle, None
        if handle is not None:
            _lib.stk_loader_destroy(handle)
        if self._streams is not None:
            self._streams.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()
