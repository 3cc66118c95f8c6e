"""Training with other frameworks: torch, torchrun, DataLoader, Lightning, accelerate, JAX. Needs the environment of
requirements-frameworks.txt, so scripts/test runs it only with --all."""

import os
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy
import stoker
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ["STOKER_TEST_DATA"]
IMAGES = torch.from_numpy(numpy.load(os.path.join(DATA, "digits_images.npy")))
LABELS = torch.from_numpy(numpy.load(os.path.join(DATA, "digits_labels.npy")))
STEPS = -(-len(LABELS) // 64)


def digits(**options):
    return stoker.Loader({"image": stoker.Field(os.path.join(DATA, "digits_images.npy"), transforms=[stoker.scale(0.5)]),
                          "label": os.path.join(DATA, "digits_labels.npy")},
                         **{"batch_size": 64, "shuffle": True, "seed": 1, "to": "torch", **options})


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)
    if done.returncode:
        raise AssertionError(f"{command}: {done.stderr[-3000:]}")
    return done.stdout


class Torch(unittest.TestCase):
    def test_tensors(self):
        with digits() as loader:
            for batch in loader:
                self.assertTrue(torch.equal(batch["image"], IMAGES[batch.indices] * torch.tensor(0.5)))
                self.assertTrue(torch.equal(batch["label"], LABELS[batch.indices]))
                self.assertEqual((batch.mask.dtype, batch.indices.dtype), (torch.bool, torch.int64))
                self.assertIs(batch["image"], batch["image"])

    def test_dtypes(self):
        for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32,
                      torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn,
                      torch.float8_e5m2):
            with self.subTest(dtype):
                field = stoker.Field(os.path.join(DATA, "digits_images.npy"), dtype=dtype)
                with stoker.Loader({"x": field}, batch_size=8, to="torch") as loader:
                    batch = loader.next()
                    self.assertEqual(batch["x"].dtype, dtype)
                    self.assertTrue(torch.equal(batch["x"].to(torch.float32), IMAGES[:8].to(dtype).to(torch.float32)))

    def test_devices(self):
        with digits(device=torch.device("cpu")) as loader:
            self.assertEqual(loader.next()["image"].device.type, "cpu")

    def test_moving(self):
        with digits() as loader:
            batch = loader.next()
            for moved in (batch.to("cpu"), batch.to(torch.device("meta"), non_blocking=True), batch.clone().to("cpu")):
                self.assertIsInstance(moved, stoker.Batch)
                self.assertEqual((moved.rows, moved.step, list(moved)), (64, 0, ["image", "label"]))
            self.assertEqual(moved["image"].device.type, "cpu")
            self.assertTrue(torch.equal(moved.indices, batch.indices))

    def test_states_are_read_with_weights_only(self):
        with digits() as loader, tempfile.TemporaryDirectory() as folder:
            loader.next()
            torch.save({"data": loader.state_dict()}, os.path.join(folder, "x.pt"))
            self.assertEqual(torch.load(os.path.join(folder, "x.pt"), weights_only=True)["data"], loader.state_dict())

    def test_views_of_files_are_copied(self):
        tensor = stoker.open(os.path.join(DATA, "digits_images.npy"))[""].tensor()
        copy = tensor.torch()
        copy[0] = 1
        self.assertTrue((tensor.numpy() == IMAGES.numpy()).all())

    def test_training_is_the_same_to_the_bit(self):
        first, second = (run(sys.executable, "digits.py", DATA).split() for _ in range(2))
        self.assertEqual(first, second)
        self.assertGreater(float(first[2]), 0.9)

    def test_torchrun_of_two_ranks(self):
        lines = run(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "digits.py", DATA).split("\n")
        (a, b) = [line.split() for line in lines if line.count(" ") == 2]
        self.assertEqual(a[0], b[0])  # the digest of the weights
        self.assertEqual(int(a[1]) + int(b[1]), len(LABELS))


class DataLoaders(unittest.TestCase):
    def test_a_data_loader_around_it(self):
        with digits() as loader:
            outer = torch.utils.data.DataLoader(loader.dataset(), batch_size=None, num_workers=0)
            for _ in range(2):
                self.assertEqual(sum(len(batch["label"]) for batch in outer), len(LABELS))
            self.assertEqual(loader.epoch, 2)

    def test_batches_of_batches_are_refused(self):
        with digits() as loader:
            for wrong in (loader, loader.dataset()):
                with self.assertRaisesRegex(TypeError, "batch_size=None") as caught:
                    next(iter(torch.utils.data.DataLoader(wrong)))
                self.assertIsInstance(caught.exception, stoker.StokerError)

    def test_arrays_and_data_sets_are_no_paths(self):
        for wrong in (torch.zeros(3), torch.utils.data.TensorDataset(torch.zeros(3))):
            for config in (wrong, {"x": wrong}):
                with self.assertRaises(stoker.StokerTypeError):
                    stoker.Loader(config)

    def test_modules_are_no_transforms(self):
        with self.assertRaisesRegex(stoker.StokerTypeError, "found Flatten"):
            stoker.Loader({"x": stoker.Field("x.npy", transforms=[torch.nn.Flatten()])})

    def test_workers_of_a_data_loader_are_refused(self):
        with digits() as loader:
            outer = torch.utils.data.DataLoader(loader.dataset(), batch_size=None, num_workers=1, multiprocessing_context="fork")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with self.assertRaisesRegex(RuntimeError, "num_workers=0"):
                    next(iter(outer))
            self.assertRaises(TypeError, pickle.dumps, loader.dataset())


class Lightning(unittest.TestCase):
    def test_three_epochs_are_trained(self):
        import lightning
        seen = []

        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(64, 10)

            def training_step(self, batch):
                seen.append((self.current_epoch, batch.epoch, batch.step))
                return torch.nn.functional.cross_entropy(self.net(batch["image"].flatten(1)), batch["label"])

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.01)

        with digits() as loader:
            trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                                        enable_progress_bar=False, enable_model_summary=False)
            trainer.fit(Model(), loader)
        self.assertEqual(seen, [(epoch, epoch, step) for epoch in range(3) for step in range(STEPS)])


    def test_every_validation_is_a_whole_epoch(self):
        """Even the first one, although Lightning takes two batches before training as a sanity check."""
        import lightning
        steps = []

        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(64, 10)

            def training_step(self, batch):
                return self.net(batch["image"].flatten(1)).sum()

            def validation_step(self, batch):
                if not self.trainer.sanity_checking:
                    steps.append(batch.step)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.01)

        with digits() as loader, digits(shuffle=False, restart=True) as validation:
            lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                              enable_model_summary=False).fit(Model(), loader, validation)
        self.assertEqual(steps, 2 * list(range(STEPS)))

    def test_ranks_of_its_own_launcher(self):
        """Lightning sets WORLD_SIZE, LOCAL_RANK and MASTER_ADDR, but neither RANK nor LOCAL_WORLD_SIZE."""
        lines = [line.split() for line in run(sys.executable, "ranks.py", DATA).split("\n") if line.startswith("rows ")]
        self.assertEqual(sorted(rank for _, rank, *_ in lines), ["0", "1"])
        self.assertEqual({int(workers) for _, _, workers, *_ in lines},
                         {max(1, min(os.cpu_count() // 2, len(os.sched_getaffinity(0))))})
        self.assertEqual(sorted(int(row) for _, _, _, *rows in lines for row in rows), list(range(len(LABELS))))


class Accelerate(unittest.TestCase):
    def test_prepare_leaves_it_alone(self):
        import accelerate
        with digits() as loader:
            model = torch.nn.Linear(64, 10)
            accelerator = accelerate.Accelerator(cpu=True)
            prepared, _ = accelerator.prepare(loader, model)
            self.assertIs(prepared, loader)
            batch = accelerate.utils.send_to_device(loader.next(), "cpu", non_blocking=True)
            self.assertIsInstance(batch, stoker.Batch)

    def test_dividing_twice_is_refused(self):
        import accelerate
        with digits(rank=0, world_size=2, batch_size=32) as loader:
            shared_out = accelerate.data_loader.IterableDatasetShard(loader.dataset(), num_processes=2, process_index=0)
            with self.assertRaisesRegex(RuntimeError, "among the ranks again"):
                next(iter(shared_out))


class Jax(unittest.TestCase):
    def test_arrays(self):
        import jax
        with digits(to="jax") as loader:
            total = 0
            step = jax.jit(lambda image: image.sum())
            for batch in loader:
                self.assertIsInstance(batch["image"], jax.Array)
                total += float(step(batch["image"]))
            self.assertEqual(total, float(IMAGES.sum()) * 0.5)
        field = stoker.Field(os.path.join(DATA, "digits_images.npy"), dtype="bfloat16")
        with stoker.Loader({"x": field}, batch_size=8, to="jax") as loader:
            array = loader.next()["x"]
            self.assertEqual(array.dtype, jax.numpy.bfloat16)
            self.assertEqual(array.astype(jax.numpy.float32).tolist(), IMAGES[:8].float().tolist())

    def test_batches_are_pytrees(self):
        import jax
        with digits(to="jax") as loader:
            batch = loader.next()
            self.assertEqual(jax.tree.map(lambda x: x.shape, batch), {"image": (64, 8, 8), "label": (64,)})
            self.assertEqual([path[0].key for path, _ in jax.tree_util.tree_leaves_with_path(batch)], ["image", "label"])
            total = jax.jit(lambda batch: batch["image"].sum() + batch["label"].sum())(batch)
            self.assertEqual(float(total), float(IMAGES[batch.indices.tolist()].sum()) / 2 + float(LABELS[batch.indices.tolist()].sum()))
            self.assertEqual(jax.device_put(batch, jax.devices()[0])["label"].tolist(), LABELS[batch.indices.tolist()].tolist())
            with self.assertRaisesRegex(TypeError, "device_put"):
                batch.to("cpu")


if __name__ == "__main__":
    unittest.main()
