"""Reads a file of write_beton with FFCV itself and compares every value.

usage: read_beton.py WRITE_BETON JPEG-FILE.beton     exit status 77 if FFCV is not installed"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from ffcv.fields import BytesField, FloatField, IntField, JSONField, NDArrayField, RGBImageField, TorchTensorField  # noqa: F401
    from ffcv.fields.basics import FloatDecoder, IntDecoder
    from ffcv.fields.bytes import BytesDecoder
    from ffcv.fields.ndarray import NDArrayDecoder
    from ffcv.fields.rgb_image import SimpleRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

SAMPLES, HEIGHT, WIDTH = 300, 60, 70


def check(path, what):
    pipelines = {"image": [SimpleRGBImageDecoder()], "jpeg": [SimpleRGBImageDecoder()], "i": [IntDecoder()],
                 "f": [FloatDecoder()], "array": [NDArrayDecoder()], "sixteen letters_": [BytesDecoder()],
                 "json": [BytesDecoder()], "tensor": [NDArrayDecoder()]}
    loader = Loader(path, batch_size=32, num_workers=2, order=OrderOption.SEQUENTIAL, drop_last=False, pipelines=pipelines)
    seen, first_jpeg = 0, None
    for image, jpeg, i, f, array, data, json, tensor in loader:
        texts = JSONField.unpack(json)
        for k in range(len(i)):
            n = seen + k
            pixels = ((n * 31 + np.arange(HEIGHT * WIDTH * 3) * 7) & 255).astype("u1").reshape(HEIGHT, WIDTH, 3)
            length = 0 if n % 3 == 0 else n % 64
            first_jpeg = jpeg[0].copy() if first_jpeg is None else first_jpeg
            assert (np.asarray(image[k]) == pixels).all(), (what, n, "image")
            assert jpeg[k].shape == (16, 20, 3) and (jpeg[k] == first_jpeg).all(), (what, n, "jpeg")
            assert int(i[k][0]) == n * n - 1000, (what, n, "int")
            assert float(f[k][0]) == n / 3, (what, n, "float")
            assert (np.asarray(array[k]) == n + np.arange(12).reshape(3, 4) / 2).all(), (what, n, "array")
            assert (np.asarray(tensor[k]) == n * 10 + np.arange(6).reshape(2, 3)).all(), (what, n, "tensor")
            assert (data[k][:length] == (n + np.arange(length)) % 256).all(), (what, n, "bytes")
            assert texts[k] == {"id": n, "name": "gr\u00f6\u00dfe"}, (what, n, texts[k])
        seen += len(i)
    assert seen == SAMPLES, seen


def main():
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for threads in (1, 3):
            path = os.path.join(folder, "%d.beton" % threads)
            subprocess.run([sys.argv[1], path, sys.argv[2], str(threads)], check=True)
            check(path, "%d threads" % threads)
            with open(path, "rb") as f:
                files.append(f.read())
        assert files[0] == files[1], "the bytes depend on the number of threads"
    print("FFCV reads every value")


main()
