#!/usr/bin/env python3
"""Compares a PyTorch loop over stoker with one over torch's DataLoader with pinned memory, on the same images.

    gpu_torch.py [--device cuda:0] [--seconds 5] [--images 4096] [--size 224] [--batch 256] [--workers N]

Both loops run a step of a small network on each batch of normalized f32 images, alternately, three times each. Prints the
median of images/s of both, and of the step alone. Before that, it checks for races: each batch is read after a kernel of
20 ms, and its sums must equal those of the same batch without a device. Exit status 1: they differ; 77: torch, stoker
or the device is missing. With --device host, the loop runs on the processor.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

try:
    import numpy
    import stoker
    import torch
except ImportError as missing:
    print(f"gpu_torch: {missing}")
    sys.exit(77)

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Images(torch.utils.data.Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = numpy.load(images, mmap_mode="r"), numpy.load(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(numpy.array(self.images[i])), int(self.labels[i])


class Step:
    """Forward and backward through two convolutions."""

    def __init__(self, place):
        self.network = torch.nn.Sequential(
            torch.nn.Conv2d(3, 32, 7, 4), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, 2), torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 1000)).to(place)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-3)

    def __call__(self, images, labels):
        self.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(self.network(images), labels).backward()
        self.optimizer.step()


def open_stoker(options, images, labels, device, **more):
    fields = {"image": stoker.Field(images, source={"layout": "nhwc"}, layout="nchw", dtype="f32",
                                    transforms=[stoker.normalize("imagenet")]),
              "label": stoker.Field(labels)}
    return stoker.Loader(fields, batch_size=options.batch, num_workers=options.workers, to="torch",
                         **({"device": device} if device else {}), **more)


def torch_batches(options, images, labels, place):
    """A tuned torch program: it copies bytes to the GPU, which converts them to floats."""
    loader = torch.utils.data.DataLoader(Images(images, labels), options.batch, shuffle=True, drop_last=True,
                                         num_workers=options.workers, pin_memory=place.type == "cuda",
                                         persistent_workers=options.workers > 0)
    mean = torch.tensor(MEAN, device=place).view(3, 1, 1)
    std = torch.tensor(STD, device=place).view(3, 1, 1)
    while True:
        for image, label in loader:
            image = image.to(place, non_blocking=True).permute(0, 3, 1, 2).float()
            yield (image / 255 - mean) / std, label.to(place, non_blocking=True)


def stoker_batches(options, images, labels, device):
    loader = open_stoker(options, images, labels, device, shuffle=True, last_batch="drop")
    while True:
        for batch in loader:
            yield batch["image"], batch["label"]


def rate(options, batches, step, wait):
    """Images per second, without the first batches."""
    for _ in range(3):
        step(*next(batches))
    wait()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < options.seconds / 3:
        step(*next(batches))
        count += options.batch
    wait()
    return count / (time.perf_counter() - begin)


def check_races(options, images, labels, device, place):
    """Whether the sums of each batch, read late, equal those from a loader without a device."""
    here = open_stoker(options, images, labels, None, shuffle=True, seed=3)
    there = open_stoker(options, images, labels, device, shuffle=True, seed=3)
    late, right = [], []
    for batch in there:
        if place.type == "cuda":
            torch.cuda._sleep(20 * torch.cuda.get_device_properties(place).clock_rate)  # kHz: 20 ms
        late.append(batch["image"].double().sum(dim=(1, 2, 3)))
    for batch in here:
        right.append(batch["image"].double().sum(dim=(1, 2, 3)))
    return all(torch.allclose(a.cpu(), b, rtol=1e-9) for a, b in zip(late, right, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--images", type=int, default=4096)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--workers", type=int, default=min(16, len(os.sched_getaffinity(0))))
    options = parser.parse_args()
    place = torch.device("cpu" if options.device == "host" else options.device)
    if place.type == "cuda" and not torch.cuda.is_available():
        print("gpu_torch: torch finds no GPU")
        return 77
    wait = torch.cuda.synchronize if place.type == "cuda" else lambda: None
    with tempfile.TemporaryDirectory() as folder:
        images, labels = os.path.join(folder, "images.npy"), os.path.join(folder, "labels.npy")
        random = numpy.random.default_rng(1)
        numpy.save(images, random.integers(0, 256, (options.images, options.size, options.size, 3), numpy.uint8))
        numpy.save(labels, random.integers(0, 1000, options.images))
        if not check_races(options, images, labels, options.device, place):
            print("gpu_torch: a batch that was read late differs from the one that was delivered")
            return 1
        late = "after a kernel of 20 ms" if place.type == "cuda" else "on the processor"
        print(f"gpu_torch: batches read {late} are correct")
        step = Step(place)
        loops = {"stoker": stoker_batches(options, images, labels, options.device),
                 "DataLoader": torch_batches(options, images, labels, place)}
        one = next(loops["stoker"])
        one = [tensor.clone() for tensor in one]
        loops["the step alone"] = iter(lambda: one, None)
        rates = {name: [] for name in loops}
        for _ in range(3):
            for name, batches in loops.items():
                rates[name].append(rate(options, batches, step, wait))
        for name, found in rates.items():
            print(f"{name:16} {statistics.median(found):12.0f} images/s  ({min(found):.0f} to {max(found):.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
