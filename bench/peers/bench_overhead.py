"""What a batch costs in Python beside its data: 64 rows of one number each, in memory, shuffled; microseconds a batch, the median of
several rounds in turns.

usage: bench_overhead.py [--rounds 7] [--seconds 1]      (PYTHONPATH names the folder of the package stoker)
"""

import argparse
import statistics
import time

import numpy

ROWS, BATCH = 1 << 16, 64
DATA = numpy.arange(ROWS, dtype=numpy.int64)


def of_stoker(to, **options):
    import os
    import tempfile

    import stoker
    path = os.path.join(tempfile.mkdtemp(), "x.npy")
    numpy.save(path, DATA)
    loader = stoker.Loader({"x": path}, batch_size=BATCH, shuffle=True, to=to, **options)

    def batches():
        while True:
            for batch in loader:
                yield batch["x"]
    return batches


def of_torch(workers):
    import torch
    data = torch.utils.data.TensorDataset(torch.from_numpy(DATA))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)

    def batches():
        while True:
            for batch in loader:
                yield batch[0]
    return batches


def of_grain():
    import grain

    def batches():
        data = grain.MapDataset.source(DATA).shuffle(seed=1).repeat().batch(BATCH).to_iter_dataset()
        yield from data
    return batches


def of_spdl():
    import spdl.pipeline
    order = numpy.random.default_rng(1)

    def source():
        while True:
            yield from order.permutation(ROWS).reshape(-1, BATCH)

    def batches():
        pipeline = spdl.pipeline.PipelineBuilder().add_source(source()).pipe(lambda rows: DATA[rows], concurrency=2).add_sink(
            4).build(num_threads=2)
        with pipeline.auto_stop():
            yield from pipeline.get_iterator(timeout=30)
    return batches


PEERS = {
    "stoker, to=\"torch\"": lambda: of_stoker("torch"),
    "stoker, to=\"numpy\"": lambda: of_stoker("numpy"),
    "torch DataLoader, no workers": lambda: of_torch(0),
    "torch DataLoader, 2 workers": lambda: of_torch(2),
    "Grain": of_grain,
    "SPDL": of_spdl,
}

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--seconds", type=float, default=1)
arguments = parser.parse_args()
running, times = {}, {}
for name, make in PEERS.items():
    try:
        running[name] = make()()
        next(running[name])
    except ImportError as error:
        print(f"{name}: {error}")
        running.pop(name, None)
for _ in range(arguments.rounds):
    for name, batches in running.items():
        for _ in range(50):
            next(batches)
        count, start = 0, time.perf_counter()
        while (taken := time.perf_counter() - start) < arguments.seconds:
            for _ in range(20):
                next(batches)
            count += 20
        times.setdefault(name, []).append(taken / count * 1e6)
for name, values in times.items():
    print(f"{name}: {statistics.median(values):.1f} us a batch")
