"""stoker feeds training loops: files on disk become batches of tensors.

    import stoker

    loader = stoker.Loader("train.yaml", batch_size=256, to="torch")
    for epoch in range(90):
        for batch in loader:                       # an epoch
            loss = model(batch["image"], batch["label"])
"""

from . import _core
from ._batch import Batch
from ._calls import Transform, transform
from ._config import Dataset, Field
from ._core import Tensor
from ._errors import (StokerError, StokerFileNotFoundError, StokerKeyError, StokerMemoryError, StokerOSError,
                      StokerRuntimeError, StokerTimeoutError, StokerTypeError, StokerValueError)
from ._files import File, Member, inspect, verify
from ._files import open_file as open
from ._loader import DatasetInfo, FieldInfo, Loader
from ._prep import prep
from ._transforms import *  # noqa: F403
from . import _transforms

__version__: str = _core.version
__all__ = ["Batch", "Dataset", "DatasetInfo", "Field", "FieldInfo", "File", "Loader", "Member", "StokerError", "StokerFileNotFoundError",
           "StokerKeyError", "StokerMemoryError", "StokerOSError", "StokerRuntimeError", "StokerTimeoutError", "StokerTypeError",
           "StokerValueError", "Tensor",
           "Transform", "inspect", "open", "prep", "transform", "verify", *_transforms.__all__]
