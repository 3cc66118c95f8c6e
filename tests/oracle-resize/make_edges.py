"""Makes more cases of the resize oracle with Pillow, from the inputs of make_resize.py: sizes at which the order of
the passes changes, and sizes for which the constants of the Hamming filter matter.

Run: python make_edges.py   (needs numpy, pillow). Writes edges.tsv, with the same columns as cases.tsv."""
import hashlib
import pathlib

import numpy as np
import PIL
from PIL import Image

here = pathlib.Path(__file__).parent
F = {"bilinear": Image.BILINEAR, "hamming": Image.HAMMING, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
rows = []


def case(name, h, w, f, box=None):
    im = Image.fromarray(np.load(here / f"{name}.npy"))
    out = np.ascontiguousarray(np.asarray(im.resize((w, h), F[f], box=box)))
    rows.append((name, h, w, f, "-" if box is None else ",".join(map(repr, box)), hashlib.sha256(out.tobytes()).hexdigest()))


for name, h, w in (("flower_97x131", 40, 262), ("flower_97x131", 40, 156), ("flower_97x131", 213, 186), ("grey_53x29", 213, 186)):
    case(name, h, w, "hamming")
# The vertical pass comes first if 2 (W - w) < H - h and h < H. Sizes one step to either side of each bound, of whole
# images and of boxes.
for name, W, H in (("flower_97x131", 97, 131), ("china_160x107", 160, 107), ("grey_53x29", 53, 29), ("noise_31x17", 31, 17)):
    for d in (1, 4, H // 3):
        for step in (-1, 0, 1, 2):
            case(name, H - 2 * d, W - d + step, "bilinear")
            case(name, H - 2 * d, W - d + step, "lanczos", (W * 0.25, H * 0.125, W * 0.75, float(H)))
    for h in (H - 1, H, H + 1):
        case(name, h, W + 9, "bicubic")
(here / "edges.tsv").write_text(f"# Pillow {PIL.__version__}; columns as in cases.tsv\n" + "".join("\t".join(map(str, r)) + "\n" for r in rows))
print(len(rows), "cases")
