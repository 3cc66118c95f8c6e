"""Makes the cases of test_own_shapes.c with torchvision and Pillow: a few small images as .png, and the results of
lists of transforms for each of them, as shape and SHA-256 of the uint8 bytes in C order.

Run: python make_cases.py   (needs numpy, pillow, torchvision; reads ../../data/photos). Each line of cases.tsv:
list of transforms  image  height  width  sha256
"""
import hashlib, pathlib
import numpy as np, PIL, torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode as I
from torchvision.transforms import functional as F1
from torchvision.transforms.v2 import functional as F

here = pathlib.Path(__file__).parent
china = Image.open(here.parent.parent / "data" / "photos" / "china.jpg").convert("RGB")
sizes = [(37, 53), (64, 64), (1, 40), (40, 1), (90, 31), (17, 120), (5, 5)]
images = {}
for k, (h, w) in enumerate(sizes):
    images[f"{k}_{h}x{w}"] = china.crop((40 * k, 30 * k, 40 * k + w, 30 * k + h))
for name, image in images.items():
    image.info.pop("icc_profile", None)
    image.save(here / f"{name}.png", optimize=True)


def to_size(im, h, w, fill):
    """The padding that CenterCrop applies to images that are too small."""
    down, right = h - im.height, w - im.width
    return F1.pad(im, [right // 2, down // 2, (right + 1) // 2, (down + 1) // 2], fill=fill)


def shorter(im, n, mode=I.BILINEAR, most=None):
    return F.resize(im, [n], interpolation=mode, max_size=most)


def longer(im, n, mode=I.BILINEAR):
    h, w = im.height, im.width
    if int(n * min(h, w) / max(h, w)) == 0:  # torchvision fails here; stoker's result has one pixel
        return im.resize((1, n) if w < h else (n, 1), Image.BILINEAR)
    return F.resize(im, None, interpolation=mode, max_size=n)


cases = {
    "[]": lambda im: im,
    "[resize: 24]": lambda im: shorter(im, 24),
    "[resize: {size: 24, interpolation: bicubic}]": lambda im: shorter(im, 24, I.BICUBIC),
    "[resize: {size: 7, interpolation: nearest}]": lambda im: shorter(im, 7, I.NEAREST),
    "[resize: {longer: 32}]": lambda im: longer(im, 32),
    "[resize: {size: 24, max_size: 40}]": lambda im: shorter(im, 24, most=40) if max(im.size) < 40 * min(im.size) else im.resize((40, 1) if im.width > im.height else (1, 40), Image.BILINEAR),
    "[resize: [20, 30]]": lambda im: im.resize((30, 20), Image.BILINEAR),
    "[resize: {longer: 32}, pad: {size: 32}]": lambda im: to_size(longer(im, 32), 32, 32, 0),
    "[resize: {longer: 33}, pad: {size: [40, 37], fill: [1, 2, 3]}]": lambda im: to_size(longer(im, 33), 40, 37, (1, 2, 3)),
    "[pad: {size: [128, 130], fill: 9}]": lambda im: to_size(im, 128, 130, (9, 9, 9)),
    "[pad: {padding: [1, 2, 3, 4], padding_mode: edge}]": lambda im: F1.pad(im, [1, 2, 3, 4], padding_mode="edge"),
    "[pad: {padding: [3, 1], fill: [200, 1, 7]}]": lambda im: F1.pad(im, [3, 1], fill=(200, 1, 7)),
    "[resize: 12, pad: 2]": lambda im: F1.pad(shorter(im, 12), [2]),
    "[horizontal_flip: {}]": lambda im: im.transpose(Image.FLIP_LEFT_RIGHT),
    "[vertical_flip: {}]": lambda im: im.transpose(Image.FLIP_TOP_BOTTOM),
    "[rotate: 90]": lambda im: im.transpose(Image.ROTATE_90),
    "[rotate: 180]": lambda im: im.transpose(Image.ROTATE_180),
    "[resize: 24, rotate: 270]": lambda im: shorter(im, 24).transpose(Image.ROTATE_270),
    "[resize: 12, pad: {padding: [1, 2, 3, 4], fill: [5, 6, 7]}, rotate: 90, horizontal_flip: {}]":
        lambda im: F1.pad(shorter(im, 12), [1, 2, 3, 4], fill=(5, 6, 7)).transpose(Image.ROTATE_90).transpose(Image.FLIP_LEFT_RIGHT),
    "[crop: {top: 0, left: 0, height: 1, width: 1}]": lambda im: im.crop((0, 0, 1, 1)),
    "[resize: 24, center_crop: 24]": lambda im: F.center_crop(shorter(im, 24), [24, 24]),
    "[resize: {longer: 40}, center_crop: 1]": lambda im: F.center_crop(longer(im, 40), [1, 1]),
}
with open(here / "cases.tsv", "w") as f:
    f.write(f"# Pillow {PIL.__version__}, torchvision {torchvision.__version__}; columns: transforms image height width sha256\n")
    for text, make in cases.items():
        for name, image in images.items():
            out = np.ascontiguousarray(np.asarray(make(image)))
            f.write("\t".join([text, f"{name}.png", str(out.shape[0]), str(out.shape[1]), hashlib.sha256(out.tobytes()).hexdigest()]) + "\n")
print(len(cases) * len(images), "cases")
