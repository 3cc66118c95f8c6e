"""Tests of loaders: values compared with NumPy, epochs, positions, config objects, threads, forks, closing."""

import copy
import gc
import itertools
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock
import warnings
from datetime import timedelta

import numpy
import stoker
from support import DATA, IMAGES, LABELS, SLOW, STEPS, Case, config, open_digits


def run(loader, count):
    out = []
    for _ in range(count):
        batch = loader.next()
        out.append((batch.global_step, batch.indices.tolist(), batch["image"].tobytes()))
    return out


class Epochs(Case):
    def test_values(self):
        with open_digits(num_epochs=2) as loader:
            self.assertEqual((loader.samples, len(loader), loader.steps_per_epoch), (len(LABELS), STEPS, STEPS))
            self.assertEqual(loader.names, ("image", "label", "words.values", "words.offsets"))
            for epoch in range(2):
                self.assertEqual(loader.epoch, epoch)
                seen = []
                for step, batch in enumerate(loader):
                    self.assertEqual((batch.epoch, batch.step, batch.global_step), (epoch, step, epoch * STEPS + step))
                    self.assertEqual(set(batch), set(loader.names))
                    self.check_digits(batch)
                    seen += batch.indices.tolist()
                self.assertTrue(batch.last_of_epoch)
                self.assertEqual(sorted(seen), list(range(len(LABELS))))
            self.assertIsNone(loader.next())

    def test_a_for_loop_after_the_last_epoch_raises(self):
        with open_digits(num_epochs=1) as loader:
            self.assertEqual(sum(1 for _ in loader), STEPS)
            for _ in range(2):
                self.fails(RuntimeError, "end", list, loader)
            loader.seek(0)
            self.assertEqual(sum(1 for _ in loader), STEPS)

    def test_unset_epochs_are_endless(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "run.yaml")
            path.write_text(f"dataset: {{fields: {{x: {{path: {DATA}/digits_labels.npy}}}}}}\nloader: {{batch_size: 600}}\n")
            for source, to in ((path, None), (str(path), "numpy"), (path.read_text(), None)):
                with stoker.Loader(source, to=to) as loader:
                    self.assertEqual([sum(1 for _ in loader) for _ in range(4)], [3, 3, 3, 3])
            path.write_text(path.read_text().replace("600", "600, num_epochs: 1"))
            with stoker.Loader(path) as loader:
                self.assertEqual(sum(1 for _ in loader), 3)
                self.fails(RuntimeError, "end", list, loader)

    def test_a_loop_left_early_continues(self):
        with open_digits() as loader:
            seen = []
            for batch in loader:
                seen += batch.indices.tolist()
                if batch.step == 4:
                    break
            self.assertEqual(loader.state_dict()["step"], 5)
            generator = (batch.indices.tolist() for batch in loader)
            seen += next(generator)
            generator.close()
            self.assertEqual(loader.state_dict()["step"], 6)
            for batch in loader:
                seen += batch.indices.tolist()
            self.assertEqual(sorted(seen), list(range(len(LABELS))))

    def test_only_the_newest_iterator_is_valid(self):
        for restart, first in ((False, (0, 1)), (True, (1, 0))):
            with self.subTest(restart=restart), open_digits(restart=restart) as loader:
                outer = iter(loader)
                self.assertEqual(next(outer).step, 0)
                inner = [(batch.epoch, batch.step) for batch in loader]
                self.assertEqual((inner[0], inner[-1]), (first, (first[0], STEPS - 1)))
                for _ in range(2):
                    self.fails(RuntimeError, "busy", next, outer)
                self.assertEqual(loader.epoch, first[0] + 1)
                whole = iter(loader)
                self.assertEqual(sum(1 for _ in whole), STEPS)
                iter(loader)
                self.assertRaises(StopIteration, next, whole)

    def test_next_can_end_the_epoch_of_an_iterator(self):
        with open_digits(batch_size=900) as loader:
            for epoch in range(3):
                unused = iter(loader)
                self.assertEqual([(batch.epoch, loader.next().step) for batch in loader], [(epoch, 1)])
                self.fails(RuntimeError, "busy", next, unused)

    def test_threads_share_an_iterator(self):
        with open_digits(copy=True) as loader:
            for epoch in range(3):
                shared, seen = iter(loader), []
                threads = [threading.Thread(target=lambda: seen.extend((batch.epoch, batch.step) for batch in shared)) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(sorted(seen), [(epoch, step) for step in range(STEPS)])

    def test_a_restarted_loop_begins_an_epoch(self):
        with open_digits(restart=True) as loader:
            for _ in range(2):
                self.assertEqual([batch.step for batch in itertools.islice(loader, 2)], [0, 1])
            batches = [(batch.epoch, batch.step) for batch in loader]
            self.assertEqual(batches, [(2, step) for step in range(STEPS)])
            self.assertEqual(next(iter(loader)).epoch, 3)
            for _ in range(2):
                loader.seek(1, 5)
                self.assertEqual(loader.epoch, 1)
                # a new iterator keeps the position that seek set
                self.assertEqual([batch.step for batch in loader], list(range(5, STEPS)))
            self.assertTrue(loader.config()["restart"])


class Ranks(Case):
    """Loaders while torch.distributed is initialized; another module stands in for it."""

    def use_distributed(self, rank, size):
        fake = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: rank,
                                     get_world_size=lambda: size)
        patch = unittest.mock.patch.dict(sys.modules, {"torch.distributed": fake})
        patch.start()
        self.addCleanup(patch.stop)

    def test_ranks_of_torch_are_the_defaults(self):
        self.use_distributed(1, 3)
        for options, expected in (({}, (1, 3)), ({"rank": 0, "world_size": 2}, (0, 2)), ({"launcher": "none"}, (0, 1))):
            with open_digits(**options) as loader:
                self.assertEqual((loader.option("rank"), loader.option("world_size")), expected)
                self.assertEqual(next(iter(loader)).step, 0)
                self.assertEqual(loader.config()["sets"], [f"loader.{name}={json.dumps(value)}" for name, value in options.items()])

    def test_a_config_without_a_launcher_has_no_ranks_of_torch(self):
        self.use_distributed(1, 3)
        alone = config()
        alone["loader"]["launcher"] = "none"
        for loader in (stoker.Loader(alone), stoker.Loader(config(), sets=["loader.launcher=none"])):
            with loader:
                self.assertEqual((loader.option("rank"), loader.option("world_size")), (0, 1))
                self.assertEqual(loader.next().step, 0)

    def test_a_loader_that_was_opened_before_the_ranks_is_refused(self):
        with open_digits() as loader, open_digits(launcher="none") as alone:
            self.use_distributed(0, 2)
            for take in (iter, stoker.Loader.next):
                self.assertIn("train_dataloader", str(self.fails(RuntimeError, "config", take, loader)))
            self.assertEqual(next(iter(alone)).step, 0)
            self.assertEqual(alone.next().step, 1)


class Positions(Case):
    def test_a_state_continues_after_the_last_batch(self):
        with open_digits() as loader:
            whole = run(loader, 40)
        with open_digits() as loader:
            self.assertEqual(run(loader, 17), whole[:17])
            state = loader.state_dict()
        self.assertEqual((state["epoch"], state["step"]), divmod(17, STEPS))
        for kept in (state, json.loads(json.dumps(state)), pickle.loads(pickle.dumps(state))):
            with open_digits(num_workers=0, prefetch=2) as loader:
                loader.load_state_dict(kept)
                self.assertEqual(run(loader, 23), whole[17:])
        with open_digits() as loader:
            loader.load_state_dict({"stoker_state": 1, "epoch": 1, "step": 2})
            self.assertEqual(run(loader, 1), whole[STEPS + 2:][:1])
            loader.seek(0)
            self.assertEqual(run(loader, 3), whole[:3])
            loader.seek(1, step=2)
            self.assertEqual(run(loader, 1), whole[STEPS + 2:][:1])

    def test_a_state_is_plain(self):
        def check(value):
            self.assertIn(type(value), (dict, int, str))
            for item in value.values() if type(value) is dict else ():
                check(item)
        with open_digits() as loader:
            check(loader.state_dict())

    def test_a_state_of_another_seed_is_refused(self):
        with open_digits() as loader:
            state = loader.state_dict()
        with open_digits(seed=4) as loader:
            error = self.fails(ValueError, "mismatch", loader.load_state_dict, state)
            self.assertEqual((error.found, error.expected), ("3", "4"))
        with open_digits(seed=4, resume="force") as loader, self.assertWarnsRegex(UserWarning, "a different seed") as caught:
            loader.load_state_dict(state)
        self.assertEqual(caught.filename, __file__)


class Configs(Case):
    def test_objects_are_equivalent_to_a_file(self):
        fields = {"image": stoker.Field(pathlib.Path(DATA) / "digits_images.npy", transforms=[stoker.scale(0.5)]),
                  "label": os.path.join(DATA, "digits_labels.npy"),
                  "words": stoker.Field(synthetic={"count": len(LABELS), "shape": (numpy.int64(7),), "dtype": numpy.uint16,
                                                   "min_length": 1})}
        options = dict(batch_size=numpy.int32(64), shuffle=True, seed=numpy.uint64(3), num_workers=2)
        with stoker.Loader(fields, to="numpy", **options) as loader, open_digits() as same:
            self.assertEqual(run(loader, 5), run(same, 5))
            self.assertEqual(loader.state_dict(), same.state_dict())

    def test_values_of_python(self):
        indices = numpy.arange(100, 40, -3)
        with stoker.Loader({"x": stoker.Field(pathlib.Path(DATA, "digits_labels.npy"), dtype=numpy.float32)}, batch_size=50,
                           indices=indices, memory_budget="64MiB", timeout=timedelta(seconds=2.5), to="numpy") as loader:
            batch = next(iter(loader))
            self.assertEqual(batch.indices.tolist(), indices.tolist())
            self.assertEqual(batch["x"].tolist(), LABELS[indices].tolist())
            self.assertEqual((loader.option("loader.timeout"), loader.option("loader.memory_budget")), (2_500_000_000, 64 << 20))
        with stoker.Loader(config(), timeout="1.5s", cache_bytes=numpy.int64(1 << 20)) as loader:
            self.assertEqual(loader.option("loader.timeout"), 1_500_000_000)

    def test_weights_are_an_array(self):
        weights = numpy.zeros(len(LABELS))
        weights[[7, 11]] = 1
        with stoker.Loader(config(), order="weighted", weights=weights, to="numpy") as loader:
            self.assertEqual(set(next(iter(loader)).indices.tolist()), {7, 11})

    def test_lists_may_be_long(self):
        indices = numpy.random.default_rng(3).integers(0, 1 << 20, 300_000)
        field = stoker.Field(synthetic={"count": 1 << 20, "shape": [1], "dtype": "u8"})
        with stoker.Loader({"x": field}, batch_size=300_000, indices=indices, to="numpy") as loader:
            self.assertTrue((loader.next().indices == indices).all())
            with stoker.Loader(**{**loader.config(), "weights": numpy.eye(1, 1 << 20)[0], "order": "weighted", "indices": None}) as one:
                self.assertEqual(set(memoryview(one.next().indices)), {0})
        self.fails(ValueError, "range", stoker.Loader, {"x": field}, indices=[1 << 20])

    def test_options_of_the_file_format_go_to_source(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "two.npz")
            numpy.savez(path, a=numpy.arange(4), b=numpy.arange(4) * 2)
            with stoker.Loader({"x": stoker.Field(path, name="b")}, batch_size=4, to="numpy") as loader:
                self.assertEqual(next(iter(loader))["x"].tolist(), [0, 2, 4, 6])

    def test_data_sets_are_mixed(self):
        fields = {"x": os.path.join(DATA, "digits_labels.npy")}
        with stoker.Loader([stoker.Dataset(fields, name="a", weight=3), stoker.Dataset(fields, name="b")], batch_size=400,
                           epoch_length=400, order="random", to="numpy") as loader:
            self.assertEqual([(d.name, d.weight, d.samples) for d in loader.datasets],
                             [("a", 3, len(LABELS)), ("b", 1, len(LABELS))])
            self.assertEqual(numpy.bincount(next(iter(loader)).sources).tolist(), [300, 100])

    def test_dollar_signs_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "${HOME} $1.npy")
            numpy.save(path, numpy.arange(3))
            with stoker.Loader({"x": path}, batch_size=3, to="numpy", error_list=os.path.join(folder, "$2"),
                               on_error="skip") as loader:
                self.assertEqual(next(iter(loader))["x"].tolist(), [0, 1, 2])
            self.assertIn("$2", os.listdir(folder))

    def test_unknown_options_name_the_nearest(self):
        for call in (lambda: stoker.Loader(config(), btch_size=3), lambda: stoker.Field("x", transform=[])):
            with self.assertRaisesRegex(TypeError, "did you mean '(batch_size|transforms)'"):
                call()
        self.fails(ValueError, "config", stoker.Loader, config(btch=1))
        self.fails(ValueError, "config", stoker.Loader, config(), batch_size=0)
        self.fails(ValueError, "config", stoker.Loader, config(), to="tensorflow")
        self.fails(TypeError, "config", stoker.Loader, config(), seed=b"1")
        self.fails(TypeError, "config", stoker.Loader, config(), sets="loader.batch_size=3")
        with self.assertRaises(TypeError):
            stoker.random_crop(3, 4)

    def test_transforms_are_steps(self):
        self.assertEqual(stoker.random_crop(224, padding=8), {"random_crop": {"size": 224, "padding": 8}})
        self.assertEqual(stoker.normalize("imagenet"), {"normalize": "imagenet"})
        self.assertEqual(stoker.horizontal_flip(), {"horizontal_flip": {}})
        self.assertEqual(stoker.random_erasing(0.3, value=0), {"random_erasing": {"p": 0.3, "value": 0}})

    def test_paths_start_where_they_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            numpy.save(os.path.join(folder, "x.npy"), numpy.arange(5))
            given = {"dataset": {"fields": {"x": {"path": "x.npy"}}}}
            with stoker.Loader(given, base_dir=folder) as loader:
                self.assertEqual(loader.samples, 5)
            error = self.fails(FileNotFoundError, "not_found", stoker.Loader, given)
            self.assertTrue(error.file.endswith("x.npy"), error.file)

    def test_config_opens_the_same(self):
        with open_digits() as loader, stoker.Loader(**pickle.loads(pickle.dumps(loader.config()))) as same:
            self.assertEqual(run(loader, 3), run(same, 3))


class Questions(Case):
    def test_answers(self):
        with open_digits(num_epochs=1, digest="bytes") as loader:
            info = {field.name: field for field in loader.fields}
            self.assertEqual((info["image"].source_dtype, info["image"].dtype, info["image"].shape),
                             ("uint8", "float32", (64, *IMAGES.shape[1:])))
            self.assertEqual(info["words"].shape[1], None)
            self.assertIn("field image", loader.explain())
            self.assertEqual(loader.option("loader.batch_size"), 64)
            self.assertEqual(loader.options["loader"]["seed"], 3)
            self.assertIsInstance(loader.notes, list)
            for _ in loader:
                pass
            self.assertEqual(loader.stats["rows"], len(LABELS))
            self.assertRegex(loader.digest(), "^[0-9a-f]{32}$")
            self.assertEqual(loader.failures, {})
            self.assertIsNone(loader.classes("label"))
            self.fails(KeyError, "not_found", loader.classes, "nothing")
            self.assertEqual(loader.option("batch_size"), loader.option("loader.batch_size"))
            self.assertEqual(loader.option("batch_size"), 64)
            for name in ("loader.nothing", "btch_size", "nothing"):
                self.fails(KeyError, "not_found", loader.option, name)
            self.assertIn("batch_size", str(self.fails(KeyError, "not_found", loader.option, "batch_sise")))

    def test_classes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "animals.csv")
            with open(path, "w") as file:
                file.write("name,kind\nTom,cat\nRex,dog\nKit,cat\n")
            with stoker.Loader({"label": stoker.Field(path, name="kind", classes="sorted")}, batch_size=3, to="numpy") as loader:
                self.assertEqual(loader.classes(), ["cat", "dog"])
                self.assertEqual(loader.class_to_idx, {"cat": 0, "dog": 1})
                self.assertEqual(next(iter(loader))["label"].tolist(), [0, 1, 0])


class Notes(Case):
    def test_notes_are_warnings(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.csv")
            with open(path, "w") as file:
                file.write("a;b\n1;2\n")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                loader = stoker.Loader({"x": stoker.Field(path, name="a;b")}, batch_size=1)
                loader.next()
            self.assertEqual([str(one.message) for one in caught], loader.notes)
            self.assertIn("delimiter", str(caught[0].message))
            self.assertEqual((caught[0].category, caught[0].filename), (UserWarning, __file__))
            with self.assertRaises(UserWarning):  # the tests treat warnings as errors
                stoker.Loader(**loader.config())
            loader.close()

    def test_facts_are_not_warnings(self):
        with unittest.mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}), \
             open_digits() as loader:
            self.assertIn("rank 1 of 2", " ".join(loader.notes))


class Lives(Case):
    def test_copies_are_refused(self):
        with open_digits(to=None) as loader:
            batch = loader.next()
            for thing in (loader, batch, batch["image"]):
                for refused in (copy.copy, copy.deepcopy, pickle.dumps):
                    self.assertRaises(TypeError, refused, thing)

    def test_closing(self):
        loader = open_digits()
        batch = loader.next()
        loader.close()
        loader.close()
        self.assertTrue(loader.closed)
        self.check_digits(batch)
        self.fails(RuntimeError, "closed", loader.next)
        self.fails(RuntimeError, "closed", list, loader)
        self.assertEqual(loader.state_dict()["step"], 1)
        self.fails(KeyError, "not_found", batch.__getitem__, "nothing")

    def test_errors_can_be_pickled(self):
        error = self.fails(FileNotFoundError, "not_found", stoker.Loader, "/nowhere/none.yaml")
        same = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(same), str(same), vars(same)), (type(error), str(error), vars(error)))
        self.assertIsInstance(same, stoker.StokerError)

    def test_a_forked_child_is_refused(self):
        loader = open_digits()
        loader.next()
        child = os.fork()
        if child == 0:
            try:
                loader.next()
            except stoker.StokerError as error:
                os._exit(0 if error.status == "forked" and isinstance(error, RuntimeError) else 2)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        loader.close()

    def test_threads_take_turns(self):
        with open_digits(num_epochs=3, copy=True) as loader:
            seen, lock = [], threading.Lock()

            def work():
                while (batch := loader.next()) is not None:
                    with lock:
                        seen.append(batch.global_step)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(seen), list(range(3 * STEPS)))

    def test_close_ends_a_wait_in_another_thread(self):
        loader = stoker.Loader(SLOW)
        raised = []

        def wait():
            try:
                loader.next()
            except stoker.StokerError as error:
                raised.append(error.status)
        thread = threading.Thread(target=wait)
        thread.start()
        try:
            loader.close()
        except stoker.StokerTimeoutError:  # the worker sleeps for ten minutes
            pass
        thread.join()
        self.assertIn(raised, (["cancelled"], ["closed"]))

    def test_cancel_and_timeout(self):
        loader = stoker.Loader(SLOW)
        error = self.fails(TimeoutError, "timeout", loader.next, timeout=0.05)
        waited = re.search(r"no batch within ([0-9.]+) s", str(error))
        self.assertGreaterEqual(float(waited[1]), 0.05)
        loop = iter(loader)
        threading.Timer(0.05, loader.cancel).start()
        self.fails(RuntimeError, "cancelled", next, loop)
        self.fails(TimeoutError, "timeout", loader.close)

    def test_a_loop_continues_after_a_timeout(self):
        slow = {"x": stoker.Field(synthetic={"count": 3, "shape": [2], "read_time": "300ms"})}
        with stoker.Loader(slow, num_workers=1, timeout="150ms") as loader:
            late, steps = 0, []
            while len(steps) < 3:
                try:
                    steps += [batch.step for batch in loader]
                except TimeoutError:
                    late += 1
                    steps += [loader.state_dict()["step"] - 1] * (loader.state_dict()["step"] > len(steps))
            self.assertGreaterEqual(late, 1)
            self.assertEqual(loader.stats["batches"], 3)

    def test_a_loader_that_is_left_open_ends_with_the_program(self):
        code = "import stoker, support; loader = support.open_digits(); batch = loader.next(); x = batch['image']"
        done = subprocess.run([sys.executable, "-X", "dev", "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_nothing_is_left(self):
        for _ in range(20):
            with open_digits() as loader:
                for batch in loader:
                    self.assertEqual(batch["image"].dtype, numpy.float32)
                    break
        del loader, batch
        gc.collect()
        self.assertLess(len(os.listdir("/proc/self/task")), 10)


if __name__ == "__main__":
    unittest.main()
