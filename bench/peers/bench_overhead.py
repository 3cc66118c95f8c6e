#!/usr/bin/env python3
"""The overhead of a batch in Python: microseconds per batch of 64 rows of one number each, in memory, shuffled; the median of several
rounds. Each loader runs in its own process, and the loaders are measured alternately.

usage: PY_TORCH=… PY_DALI=… PY_FFCV=… bench_overhead.py [--rounds 7] [--seconds 1]

The variables name the interpreters of setup.sh's environments; without one, its loaders are skipped. PYTHONPATH must
contain the folder of the stoker package. FFCV reads a .beton file in the page cache; DALI's batches are gathered by
NumPy.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROWS, BATCH = 1 << 16, 64


def numbers():
    import numpy
    return numpy.arange(ROWS, dtype=numpy.int64)


def orders():
    """Yields the rows of one batch after another, endlessly."""
    import numpy
    order = numpy.random.default_rng(1)
    while True:
        yield from order.permutation(ROWS).reshape(-1, BATCH)


def of_stoker(folder, to):
    import numpy
    import stoker
    path = os.path.join(folder, "x.npy")
    numpy.save(path, numbers())
    loader = stoker.Loader({"x": path}, batch_size=BATCH, shuffle=True, to=to)
    while True:
        for batch in loader:
            yield batch["x"]


def of_torch(folder, workers):
    import torch
    data = torch.utils.data.TensorDataset(torch.from_numpy(numbers()))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    while True:
        for batch in loader:
            yield batch[0]


def of_grain(folder):
    import grain
    yield from grain.MapDataset.source(numbers()).shuffle(seed=1).repeat().batch(BATCH).to_iter_dataset()


def of_spdl(folder):
    import spdl.pipeline
    data = numbers()
    pipeline = spdl.pipeline.PipelineBuilder().add_source(orders()).pipe(lambda rows: data[rows], concurrency=2).add_sink(4).build(
        num_threads=2)
    with pipeline.auto_stop():
        yield from pipeline.get_iterator(timeout=30)


def of_dali(folder):
    import numpy
    from nvidia.dali import fn, pipeline_def
    data, batches = numbers(), orders()

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
    def pipeline():
        return fn.external_source(lambda: data[next(batches)], batch=True)

    built = pipeline()
    built.build()
    while True:
        yield numpy.asarray(built.run()[0].as_tensor())


def of_ffcv(folder):
    from ffcv.fields import IntField
    from ffcv.fields.decoders import IntDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import Squeeze, ToTensor
    from ffcv.writer import DatasetWriter
    path = os.path.join(folder, "x.beton")
    DatasetWriter(path, {"x": IntField()}, num_workers=1).from_indexed_dataset([(number,) for number in numbers().tolist()])
    loader = Loader(path, batch_size=BATCH, num_workers=2, order=OrderOption.RANDOM, os_cache=True,
                    pipelines={"x": [IntDecoder(), ToTensor(), Squeeze(1)]})
    while True:
        for batch in loader:
            yield batch[0]


PEERS = {
    'stoker, to="torch"': ("PY_TORCH", of_stoker, "torch"),
    'stoker, to="numpy"': ("PY_TORCH", of_stoker, "numpy"),
    "torch DataLoader, no workers": ("PY_TORCH", of_torch, 0),
    "torch DataLoader, 2 workers": ("PY_TORCH", of_torch, 2),
    "FFCV": ("PY_FFCV", of_ffcv),
    "DALI": ("PY_DALI", of_dali),
    "SPDL": ("PY_TORCH", of_spdl),
    "Grain": ("PY_DALI", of_grain),
}


def measure(name, seconds):
    """For each line on standard input, measures a round and prints its microseconds per batch."""
    _, make, *arguments = PEERS[name]
    with tempfile.TemporaryDirectory() as folder:
        batches = make(folder, *arguments)
        first = next(batches)
        assert tuple(first.shape) == (BATCH,) and len(set(first.tolist())) == BATCH, first
        print("ready", flush=True)
        for _ in sys.stdin:
            for _ in range(50):
                next(batches)
            count, start = 0, time.perf_counter()
            while (taken := time.perf_counter() - start) < seconds:
                for _ in range(20):
                    next(batches)
                count += 20
            print(taken / count * 1e6, flush=True)
        batches.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return measure(arguments.peer, arguments.seconds)
    running = {}
    for name, (variable, *_) in PEERS.items():
        if not os.environ.get(variable):
            print(f"{name}: {variable} is not set")
            continue
        process = subprocess.Popen([os.environ[variable], __file__, f"--peer={name}", f"--seconds={arguments.seconds}"], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if process.stdout.readline().strip() == "ready":
            running[name] = process
        else:
            print(f"{name}: failed")
    times = {name: [] for name in running}
    for _ in range(arguments.rounds):
        for name, process in running.items():
            process.stdin.write("\n")
            process.stdin.flush()
            times[name].append(float(process.stdout.readline()))
    for name, process in running.items():
        print(f"{name}: {statistics.median(times[name]):.1f} us per batch ({min(times[name]):.1f} to {max(times[name]):.1f})")
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main()
