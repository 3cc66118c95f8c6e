#!/usr/bin/env python3
"""Writes the JPEG images with which test_jpeg_encode.c compares its own: Pillow encodes the same pixels, which both
compute with one formula.

    pip install pillow numpy
    make_jpeg.py            writes jpeg_*.jpg beside itself

They were written with Pillow 13.0.0 (libjpeg-turbo 3.2.0). Each file is a case:
jpeg_WIDTHxHEIGHTxCHANNELS_qQUALITY_SUBSAMPLING.jpg.
"""
import pathlib

import numpy as np
from PIL import Image

CASES = [
    (1, 1, 3, 90, "420"), (1, 1, 1, 90, "444"), (61, 47, 3, 90, "420"), (61, 47, 3, 90, "422"), (61, 47, 3, 90, "444"),
    (61, 47, 3, 50, "420"), (61, 47, 3, 100, "444"), (61, 47, 1, 75, "444"), (17, 33, 3, 85, "420"), (200, 9, 3, 90, "422"),
    (64, 48, 3, 1, "420"),
]


def pixels(width, height, channels):
    """Same as stkt_jpeg_pixel in tests/support/jpeg_make.h."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    noise = ((y * 7919 + x * 104729 + c * 1299709) * 2654435761) & 0xFFFFFFFF
    values = np.where((x // 5 + y // 3 + c) & 1, 170, 60) + (noise >> 27) + (x * (c + 1) + y * (3 - c)) % 50
    return (values & 0xFF).astype(np.uint8)


for width, height, channels, quality, subsampling in CASES:
    image = pixels(width, height, channels)
    image = Image.fromarray(image[:, :, 0] if channels == 1 else image)
    path = pathlib.Path(__file__).parent / f"jpeg_{width}x{height}x{channels}_q{quality}_{subsampling}.jpg"
    image.save(path, "JPEG", quality=quality, subsampling={"444": 0, "422": 1, "420": 2}[subsampling])
