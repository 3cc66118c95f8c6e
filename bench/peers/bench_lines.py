#!/usr/bin/env python3
"""Counts the lines of code that two common data sets take with each loader: the digits (two arrays: shuffled, scaled to f32, batches of
64) and ImageNet (class folders of JPEG: random resized crop, flip, normalized f32 NCHW, batches of 256, two workers). Prints the number of
lines of each program, without blank lines and comments, and takes one batch if its packages are installed. All run on the CPU. FFCV needs
at least 256 images, because it drops the last incomplete batch.

usage: bench_lines.py DIGITS-IMAGES.npy DIGITS-LABELS.npy FOLDER-OF-CLASS-FOLDERS
"""
import inspect
import sys


def digits_stoker(images, labels):
    import stoker
    fields = {"image": stoker.Field(images, transforms=[stoker.scale(1 / 16)]), "label": labels}
    for batch in stoker.Loader(fields, batch_size=64, shuffle=True, to="torch"):
        yield batch["image"], batch["label"]


def digits_torch(images, labels):
    import numpy
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    data = TensorDataset(torch.from_numpy(numpy.load(images)).float() / 16, torch.from_numpy(numpy.load(labels)))
    yield from DataLoader(data, batch_size=64, shuffle=True)


def digits_grain(images, labels):
    import grain
    import numpy
    x, y = numpy.load(images), numpy.load(labels)
    data = grain.MapDataset.range(len(y)).shuffle(seed=1).map(lambda i: (x[i].astype("float32") / 16, y[i])).batch(64)
    yield from data.to_iter_dataset()


def digits_spdl(images, labels):
    import numpy
    from spdl.pipeline import PipelineBuilder
    x, y = numpy.load(images), numpy.load(labels)
    order = numpy.random.default_rng(1).permutation(len(y))
    def read(rows):
        return x[rows].astype("float32") / 16, y[rows]
    pipeline = PipelineBuilder().add_source(order).aggregate(64).pipe(read, concurrency=2).add_sink(4).build(num_threads=2)
    with pipeline.auto_stop():
        yield from pipeline.get_iterator()


def digits_dali(images, labels):
    import numpy
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator
    x, y = numpy.load(images), numpy.load(labels)
    def batches():
        order = numpy.random.default_rng().permutation(len(y))
        for i in range(0, len(y), 64):
            yield x[order[i:i + 64]], y[order[i:i + 64]]
    @pipeline_def(batch_size=64, num_threads=2, device_id=None)
    def pipeline():
        image, label = fn.external_source(batches, num_outputs=2, batch=True, cycle="raise")
        return fn.cast(image, dtype=types.FLOAT) / 16, label
    for batch in DALIGenericIterator(pipeline(), ["image", "label"], auto_reset=True):
        yield batch[0]["image"], batch[0]["label"]


def digits_ffcv(images, labels):
    import numpy
    from ffcv.fields import IntField, NDArrayField
    from ffcv.fields.decoders import IntDecoder, NDArrayDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import Squeeze, ToTensor
    from ffcv.writer import DatasetWriter
    data = list(zip((numpy.load(images) / 16).astype("float32"), map(int, numpy.load(labels))))
    fields = {"image": NDArrayField(numpy.dtype("float32"), (8, 8)), "label": IntField()}
    DatasetWriter("digits.beton", fields).from_indexed_dataset(data)
    pipelines = {"image": [NDArrayDecoder(), ToTensor()], "label": [IntDecoder(), ToTensor(), Squeeze()]}
    yield from Loader("digits.beton", batch_size=64, num_workers=2, order=OrderOption.RANDOM, drop_last=False, pipelines=pipelines)


def imagenet_stoker(folder):
    import stoker
    steps = [stoker.random_resized_crop(224), stoker.random_horizontal_flip(0.5), stoker.normalize("imagenet")]
    fields = {"image": stoker.Field(folder, layout="nchw", transforms=steps), "label": folder}
    for batch in stoker.Loader(fields, batch_size=256, shuffle=True, num_workers=2, to="torch"):
        yield batch["image"], batch["label"]


def imagenet_torch(folder):
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms
    steps = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    yield from DataLoader(datasets.ImageFolder(folder, steps), batch_size=256, shuffle=True, num_workers=2)


def imagenet_grain(folder):
    import grain
    import numpy
    from torchvision import datasets, transforms
    steps = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    files = datasets.ImageFolder(folder)
    def read(i):
        image, label = files[i]
        return numpy.asarray(steps(image)), label
    data = grain.MapDataset.range(len(files)).shuffle(seed=1).map(read).batch(256)
    yield from data.to_iter_dataset(grain.ReadOptions(num_threads=2))


def imagenet_spdl(folder):
    import numpy
    import torch
    from spdl.pipeline import PipelineBuilder
    from torchvision import datasets, transforms
    steps = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    files = datasets.ImageFolder(folder, steps)
    order = numpy.random.default_rng(1).permutation(len(files)).tolist()
    pipeline = (PipelineBuilder().add_source(order).pipe(files.__getitem__, concurrency=2).aggregate(256)
                .pipe(torch.utils.data.default_collate).add_sink(4).build(num_threads=2))
    with pipeline.auto_stop():
        yield from pipeline.get_iterator()


def imagenet_dali(folder):
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator
    @pipeline_def(batch_size=256, num_threads=2, device_id=None)
    def pipeline():
        files, label = fn.readers.file(file_root=folder, random_shuffle=True, name="reader")
        image = fn.decoders.image_random_crop(files, random_area=(0.08, 1), random_aspect_ratio=(3 / 4, 4 / 3))
        image = fn.resize(image, size=(224, 224))
        return fn.crop_mirror_normalize(
            image, mirror=fn.random.coin_flip(), dtype=types.FLOAT, output_layout="CHW",
            mean=[255 * x for x in (0.485, 0.456, 0.406)], std=[255 * x for x in (0.229, 0.224, 0.225)]), label
    for batch in DALIGenericIterator(pipeline(), ["image", "label"], reader_name="reader", auto_reset=True):
        yield batch[0]["image"], batch[0]["label"]


def imagenet_ffcv(folder):
    import numpy
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage
    from ffcv.writer import DatasetWriter
    from torchvision.datasets import ImageFolder
    fields = {"image": RGBImageField(write_mode="jpg", max_resolution=500), "label": IntField()}
    DatasetWriter("imagenet.beton", fields, num_workers=2).from_indexed_dataset(ImageFolder(folder))
    mean, std = 255 * numpy.array([0.485, 0.456, 0.406]), 255 * numpy.array([0.229, 0.224, 0.225])
    pipelines = {
        "image": [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip(), NormalizeImage(mean, std, numpy.float32),
                  ToTensor(), ToTorchImage(channels_last=False, convert_back_int16=False)],
        "label": [IntDecoder(), ToTensor(), Squeeze()]}
    yield from Loader("imagenet.beton", batch_size=256, num_workers=2, order=OrderOption.RANDOM, pipelines=pipelines)


def lines(program):
    """The number of lines of a function, without its `def`, blank lines and comments."""
    return sum(1 for line in inspect.getsource(program).splitlines()[1:] if line.strip() and not line.strip().startswith("#"))


def main():
    arguments = {"digits": sys.argv[1:3], "imagenet": sys.argv[3:4]}
    for name, program in list(globals().items()):
        data, _, loader = name.partition("_")
        if data not in arguments:
            continue
        try:
            first = next(program(*arguments[data]))
            result = ", ".join(f"{tuple(part.shape)} {part.dtype}" for part in first)
        except ImportError as error:
            result = f"not run: {error}"
        print(f"{data:10}{loader:8}{lines(program):4} lines   {result}", flush=True)


if __name__ == "__main__":
    main()
