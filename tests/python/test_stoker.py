"""The Python binding against NumPy: values, lifetimes, positions, errors. torch too, where it is installed.
    STOKER_LIBRARY=…/libstoker.so python3 test_stoker.py FOLDER-OF-tests/data"""

import gc
import os
import signal
import sys
import tempfile
import threading

try:
    import numpy
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import stoker  # noqa: E402

DATA = sys.argv[1]
IMAGES = numpy.load(os.path.join(DATA, "digits_images.npy"))
LABELS = numpy.load(os.path.join(DATA, "digits_labels.npy"))


def config(**loader):
    return {
        "dataset": {"fields": {
            "image": {"path": os.path.join(DATA, "digits_images.npy"), "transforms": [{"scale": 0.5}]},
            "label": {"path": os.path.join(DATA, "digits_labels.npy")},
            "words": {"synthetic": {"count": len(LABELS), "shape": [7], "dtype": "u16", "min_length": 1}},
        }},
        "loader": {"batch_size": 64, "order": "random", "seed": 3, "num_workers": 2, **loader},
    }


def check(batch):
    image, label = numpy.from_dlpack(batch["image"]), numpy.asarray(batch["label"])
    assert image.dtype == numpy.float32 and image.shape == (batch.rows,) + IMAGES.shape[1:]
    assert (image == IMAGES[batch.indices].astype(numpy.float32) * 0.5).all()
    assert (label == LABELS[batch.indices]).all()
    offsets = numpy.from_dlpack(batch["words.offsets"])
    assert offsets[-1] == numpy.from_dlpack(batch["words.values"]).shape[0] and len(offsets) == batch.rows + 1
    return image


def test_values_and_epochs():
    with stoker.Loader(config(num_epochs=2)) as loader:
        assert loader.samples == len(LABELS) and len(loader) == loader.steps_per_epoch
        assert loader.names == ["image", "label", "words.values", "words.offsets"]
        for epoch in range(2):
            assert loader.epoch == epoch
            seen = []
            for batch in loader:
                assert batch.epoch == epoch and set(batch) == set(loader.names)
                check(batch)
                seen += batch.indices
            assert sorted(seen) == list(range(len(LABELS)))
        assert loader.next() is None and list(loader) == []


def test_what_is_exported_stays():
    with stoker.Loader(config(prefetch=3)) as loader:
        kept = loader.next()
        indices, image = kept.indices, check(kept)
        tensor = kept["image"]
        capsule = tensor.__dlpack__()  # taken by nobody
        for _ in range(5):
            check(loader.next())
        try:
            numpy.from_dlpack(tensor)
            raise AssertionError("an old batch was exported")
        except ValueError:
            pass
        del capsule
        gc.collect()
    del loader, kept, tensor
    gc.collect()
    assert (image == IMAGES[indices].astype(numpy.float32) * 0.5).all()


def run(loader, count):
    out = []
    for _ in range(count):
        batch = loader.next()
        out.append((batch.global_step, batch.indices, check(batch).tobytes()))
    return out


def test_positions():
    with stoker.Loader(config(num_epochs=2)) as loader:
        whole = run(loader, 40)
    with stoker.Loader(config(num_epochs=2)) as loader:
        assert run(loader, 17) == whole[:17]
        batch = loader._batch
        state = loader.state_dict()
        check(batch)  # it may still be looked at
        assert (state["epoch"], state["step"]) == divmod(17, loader.steps_per_epoch)
    with stoker.Loader(config(num_epochs=2, num_workers=0, prefetch=1)) as loader:
        loader.load_state_dict(state)
        assert run(loader, 23) == whole[17:]
        loader.load_state_dict({"stoker_state": 1, "epoch": 1, "step": 2})
        assert run(loader, 1) == whole[loader.steps_per_epoch + 2:][:1]
        loader.seek(0)
        assert run(loader, 3) == whole[:3]
    with stoker.Loader(config(num_epochs=2, seed=4)) as loader:
        try:
            loader.load_state_dict(state)
            raise AssertionError("a state of another seed was accepted")
        except stoker.StokerError as error:
            assert error.status == "mismatch" and error.found == "3" and error.expected == "4", error


def test_a_loop_left_early():
    with stoker.Loader(config()) as loader:
        seen = []
        for batch in loader:
            seen += batch.indices
            if batch.step == 4:
                break
        for batch in loader:
            seen += batch.indices
        assert sorted(seen) == list(range(len(LABELS)))


def test_errors():
    for wrong, status in ((config(batch_size=0), "config"), (config(btch=1), "config")):
        try:
            stoker.Loader(wrong)
            raise AssertionError("accepted")
        except stoker.StokerError as error:
            assert error.status == status, error
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.yaml")
        with open(path, "w") as file:
            file.write("dataset: {fields: {x: {path: none.npy}}}\n")
        try:
            stoker.Loader(path, sets=["loader.num_workers=1"])
            raise AssertionError("accepted")
        except stoker.StokerError as error:
            assert error.status == "not_found" and error.file.endswith("none.npy"), error
    loader = stoker.Loader(config())
    batch = loader.next()
    for name in ("nothing", "words"):
        try:
            batch[name]
            raise AssertionError("there is no such tensor")
        except KeyError:
            pass
    loader.close()
    loader.close()
    try:
        loader.next()
        raise AssertionError("it is closed")
    except ValueError:
        pass


SLOW = {"dataset": {"fields": {"x": {"synthetic": {"count": 4, "shape": [2], "read_time": 600}}}},
        "loader": {"num_workers": 1, "close_timeout": 0.01}}


def test_cancel_and_timeout():
    loader = stoker.Loader(SLOW)
    try:
        loader.next(timeout=0.05)
        raise AssertionError("it came in time")
    except stoker.StokerError as error:
        assert error.status == "timeout" and "reading" in str(error), error
    threading.Timer(0.05, loader.cancel).start()
    try:
        loader.next()
        raise AssertionError("it came")
    except stoker.StokerError as error:
        assert error.status == "cancelled", error
    loader.close()


def test_ctrl_c():
    loader = stoker.Loader(SLOW)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        loader.next()
        raise AssertionError("it came")
    except KeyboardInterrupt:
        pass
    loader.close()


def test_the_host_device_is_refused():
    for device in ("host", "host:0"):
        try:
            stoker.Loader(config(device=device))
            raise AssertionError("a device was taken")
        except stoker.StokerError as error:
            assert error.status == "unsupported" and error.expected == "cpu or cuda", error
            assert error.found.startswith("host"), error.found
    stoker.Loader(config(device="cpu")).close()


def test_torch():
    try:
        import torch
    except ImportError:
        print("torch is not installed: NumPy alone")
        return
    with stoker.Loader(config()) as loader:
        batch = loader.next()
        image = torch.from_dlpack(batch["image"])
        assert torch.equal(image, torch.from_numpy(IMAGES[batch.indices].astype(numpy.float32) * 0.5))


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name)
