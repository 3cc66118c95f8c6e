"""Tests of the rest of the API: transforms in Python, preparation jobs, files, previews, failed samples, and where
rows come from."""

import ast
import glob
import graphlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy
import stoker
from support import DATA, IMAGES, LABELS, Case, open_digits

DIGITS = os.path.join(DATA, "digits_images.npy")


def png_rows(data):
    """Height and width of a PNG."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return height, width


class Transforms(Case):
    def test_a_function_is_a_first_step(self):
        @stoker.transform
        def turned(image, random):
            return image[::-1]
        for name in (turned, {"call": "turned"}, lambda image: image[::-1], numpy.flipud):
            with stoker.Loader({"image": stoker.Field(DIGITS, transforms=[name, stoker.scale(0.5)])}, batch_size=64, to="numpy",
                               num_workers=2) as loader:
                for batch in loader:
                    self.assertTrue((batch["image"] == IMAGES[batch.indices][:, ::-1] * numpy.float32(0.5)).all())

    def test_a_single_step_need_not_be_in_a_list(self):
        for step in (lambda image: image * 2, stoker.scale(2), {"scale": 2}):
            with stoker.Loader({"image": stoker.Field(DIGITS, transforms=step)}, batch_size=64, to="numpy") as loader:
                self.assertTrue((loader.next()["image"] == IMAGES[:64] * 2).all())

    def test_another_dtype_and_shape(self):
        @stoker.transform(dtype=numpy.float32, shape=lambda shape: (2, *shape))
        def doubled(image, random):
            return numpy.stack([image, image + 0.25]).astype(numpy.float32)
        with stoker.Loader({"image": stoker.Field(DIGITS, transforms=[doubled])}, batch_size=64, to="numpy") as loader:
            batch = loader.next()
            self.assertEqual(batch["image"].shape, (64, 2, 8, 8))
            self.assertTrue((batch["image"][:, 1] == IMAGES[batch.indices] + numpy.float32(0.25)).all())

    def test_draws_are_the_same_for_any_number_of_workers(self):
        def noise(image, random):
            return random.integers(0, 255, image.shape, dtype=numpy.uint8)
        seen = []
        for workers in (0, 1, 3):
            with stoker.Loader({"image": stoker.Field(DIGITS, transforms=[noise])}, batch_size=100, shuffle=True, to="numpy",
                               num_workers=workers) as loader:
                seen.append([batch["image"].tobytes() for batch in loader] + [loader.next()["image"].tobytes()])
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])
        self.assertNotEqual(seen[0][0], seen[0][-1])

    def test_errors_belong_to_the_sample(self):
        def picky(image, random):
            if image.sum() == IMAGES[5].sum():
                raise ValueError("not this one")
            return image
        bad = int((IMAGES.reshape(len(IMAGES), -1).sum(1) == IMAGES[5].sum()).sum())
        field = stoker.Field(DIGITS, transforms=[picky])
        with stoker.Loader({"image": field}, batch_size=64) as loader:
            error = self.fails(ValueError, "bad_value", loader.next)
            self.assertIn("ValueError: not this one", str(error))
            self.assertEqual(error.record, min(i for i in range(64) if IMAGES[i].sum() == IMAGES[5].sum()))
        with stoker.Loader({"image": field}, batch_size=64, on_error="skip", max_error_fraction=1) as loader:
            batches = [(batch.failed, batch.rows) for batch in loader]
            self.assertEqual(sum(failed for failed, _ in batches), bad)
            self.assertEqual(sum(rows for _, rows in batches), len(IMAGES) - bad)
            self.assertEqual(loader.failures, {"bad_value": bad})

    def test_the_text_of_an_error_need_not_be_unicode(self):
        def bad(image):
            raise ValueError("\udcff is here")
        with stoker.Loader({"image": stoker.Field(DIGITS, transforms=[bad])}, batch_size=4) as loader:
            self.assertIn("is here", str(self.fails(ValueError, "bad_value", loader.next)))

    def test_an_exception_that_keeps_the_input_is_reported(self):
        kept = []

        def bad(image):
            kept.append(image)
            raise ValueError("the real reason")
        with stoker.Loader({"image": stoker.Field(DIGITS, transforms=[bad])}, batch_size=4) as loader:
            self.assertIn("the real reason", str(self.fails(ValueError, "bad_value", loader.next)))

    def test_a_wrong_result_is_refused(self):
        kept = []
        for function, word in ((lambda image, random: image[:4], "shape"), (lambda image, random: image.astype(float), "cast"),
                               (lambda image, random: kept.append(image) or image, "kept")):
            with stoker.Loader({"image": stoker.Field(DIGITS, transforms=[function])}, batch_size=4) as loader:
                self.assertIn(word, str(self.fails(ValueError, "bad_value", loader.next)).lower())

    def test_ctrl_c_in_a_function_loses_nothing(self):
        """Without workers, the function runs in the main thread, which signals can interrupt."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

        def interrupts(image, random):
            if fire:
                fire.clear()
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass
            return image
        fire, seen = [], 0
        with stoker.Loader({"image": stoker.Field(DIGITS, transforms=[interrupts])}, batch_size=16, num_workers=0) as loader:
            for _ in range(5):
                fire.append(True)
                try:
                    while True:
                        loader.next()
                        seen += 1
                        seen += 0
                except KeyboardInterrupt:
                    pass
                step = loader.state_dict()["step"]
                # the signal may arrive after next has returned and before the batch is counted
                self.assertIn(step - seen, (0, 1))
                seen = step


class Jobs(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def job(self, **more):
        return {"dataset": {"fields": {"image": {"path": DIGITS}}}, "output": {"path": os.path.join(self.folder, "out.npy")}, **more}

    def test_a_job_runs(self):
        seen = []
        plan = stoker.prep(self.job(), dry_run=True)
        self.assertEqual((plan["positions"], plan["output_exists"]), (len(IMAGES), False))
        self.assertEqual(os.listdir(self.folder), [])
        result = stoker.prep(self.job(), progress=seen.append, interval=0.001)
        self.assertEqual((result["complete"], result["rows"], result["skipped"]), (True, len(IMAGES), 0))
        self.assertTrue((numpy.load(os.path.join(self.folder, "out.npy")) == IMAGES).all())
        self.assertTrue(os.path.exists(result["manifest_path"]))
        self.assertEqual([now["phase"] for now in seen].count("done"), 1)
        self.assertEqual((seen[-1]["phase"], seen[-1]["rows"], seen[-1]["bytes_out"]), ("done", len(IMAGES), result["bytes"]))
        self.assertGreaterEqual(seen[-1]["elapsed"], max(now["elapsed"] for now in seen[:-1]))
        self.assertLessEqual({now["phase"] for now in seen}, {"opening", "statistics", "rows", "joining", "finishing", "done"})
        self.assertTrue(stoker.prep(self.job(), dry_run=True)["output_exists"])

    def test_errors_and_exceptions_are_raised(self):
        wrong = self.job()
        wrong["dataset"]["fields"]["image"]["path"] = "none.npy"
        self.fails(FileNotFoundError, "not_found", stoker.prep, wrong)
        self.fails(ValueError, "config", stoker.prep, self.job(), sets=["prep.nothing=1"])

        def stop(now):
            raise LookupError("enough")
        slow = self.job()
        slow["dataset"]["fields"]["image"] = {"synthetic": {"count": 2000, "shape": [4], "read_time": "1ms"}}
        self.assertRaises(LookupError, stoker.prep, slow, progress=stop, interval=0.01)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out.npy")))
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        self.assertRaises(KeyboardInterrupt, stoker.prep, slow, interval=0.01)


class Files(Case):
    def test_a_file_of_one_array(self):
        file = stoker.open(DIGITS)
        self.assertEqual((file.format, list(file.keys()), len(file)), ("npy", [""], len(IMAGES)))
        member = file[""]
        self.assertEqual((member.shape, member.dtype, len(member)), (IMAGES.shape, "uint8", len(IMAGES)))
        self.assertTrue((member[7] == IMAGES[7]).all())
        self.assertTrue((member.sample(-1).numpy() == IMAGES[-1]).all())
        self.assertTrue((member[10:20, ::2] == IMAGES[10:20, ::2]).all())
        self.assertTrue((numpy.asarray(member) == IMAGES).all())
        self.assertRaises(IndexError, lambda: member[len(IMAGES)])
        whole = member.tensor()
        self.assertTrue(whole.readonly)
        self.assertRaises(BufferError, whole.__dlpack__)  # DLPack before 1.0 has no read-only flag
        self.assertFalse(numpy.from_dlpack(whole).flags.writeable)
        array = member.numpy()
        with self.assertRaises(ValueError):
            array[0] = 1
        copy = whole.clone().numpy()
        copy[0] = 1
        del file, member, whole
        self.assertTrue((array == IMAGES).all())

    def test_members(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "two.npz")
            numpy.savez(path, a=numpy.arange(4, dtype=">i4"), b=numpy.eye(3))
            file = stoker.open(path)
            self.assertEqual(sorted(file), ["a", "b"])
            self.assertEqual(file["a"].numpy().tolist(), [0, 1, 2, 3])
            self.assertEqual(file["b"][1].tolist(), [0, 1, 0])
            self.assertRaises(KeyError, lambda: file["c"])
        self.fails(FileNotFoundError, "not_found", stoker.open, "/nowhere/x.h5")

    def test_an_empty_member(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "empty.npz")
            numpy.savez(path, a=numpy.zeros((0, 3)), b=numpy.eye(3))
            self.assertEqual(stoker.open(path)["a"].numpy().shape, (0, 3))

    def test_the_program_that_is_named(self):
        self.addCleanup(os.environ.pop, "STOKER_HELPER", None)
        os.environ["STOKER_HELPER"] = "/nowhere/stoker"
        with self.assertRaisesRegex(FileNotFoundError, "/nowhere/stoker does not exist: it is the value of STOKER_HELPER"):
            stoker.inspect(DIGITS)

    def test_a_job_in_a_folder_whose_name_is_not_unicode(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = os.path.join(parent, "\udcff")
            os.mkdir(folder)
            job = os.path.join(folder, "job.yaml")
            with open(job, "w", encoding="utf8") as out:
                out.write("dataset: {fields: {x: {synthetic: {count: 64, shape: [2]}}}}\noutput: {path: x.npy}\n")
            self.assertEqual(stoker.prep(job, dry_run=True)["samples"], 64)

    def test_inspect_and_verify(self):
        (member,) = stoker.inspect(DIGITS)["members"]
        self.assertEqual((member["dtype"], member["shape"]), ("uint8", list(IMAGES.shape)))
        self.assertEqual(stoker.verify(DIGITS)["bad_records"], 0)
        with self.assertRaises(stoker.StokerError):
            stoker.inspect("/nowhere/x.npy")
        with self.assertRaisesRegex(stoker.StokerError, r"(?s)-x\.npy"):
            stoker.inspect("-x.npy")
        self.assertTrue(stoker.__version__)
        done = subprocess.run([sys.executable, "-m", "stoker", "inspect", "--json", DIGITS], capture_output=True, check=True)
        self.assertIn(b'"uint8"', done.stdout)


class Examples(Case):
    def test_train_digits(self):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "train_digits.py")
        outputs = [subprocess.run([sys.executable, program, DIGITS, os.path.join(DATA, "digits_labels.npy")], capture_output=True,
                                  text=True, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}).stdout for _ in range(2)]
        self.assertEqual(outputs[0], outputs[1])
        self.assertGreater(float(outputs[0].split()[2].rstrip("%")), 90)


class Package(Case):
    def test_modules_do_not_import_each_other(self):
        imports = {}
        for path in glob.glob(os.path.join(os.path.dirname(stoker.__file__), "_*.py")):
            with open(path, encoding="utf8") as file:
                nodes = [node for node in ast.walk(ast.parse(file.read())) if isinstance(node, ast.ImportFrom) and node.level]
            imports[os.path.basename(path)[:-3]] = {name for node in nodes for name in ([node.module] if node.module else [
                alias.name for alias in node.names])}
        self.assertIn("_config", imports["_loader"])
        graphlib.TopologicalSorter(imports).prepare()


class Looks(Case):
    def test_preview(self):
        with open_digits() as loader:
            before = loader.state_dict()
            for png in (loader.preview(), loader.preview("image", images=4)):
                height, width = png_rows(png)
                self.assertGreater(min(height, width), 8)
                self.assertGreater(len(zlib.decompress(png[png.index(b"IDAT") + 4:][:struct.unpack(">I", png[png.index(b"IDAT") - 4:][:4])[0]])), 0)
            self.assertEqual(loader.state_dict(), before)
            self.assertRaises(ValueError, loader.preview, images=0)
            self.assertRaises(ValueError, stoker.Loader({"x": os.path.join(DATA, "digits_labels.npy")}).preview)

    def test_origins(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, f"{i}.npy") for i in range(2)]
            for i, path in enumerate(paths):
                numpy.save(path, LABELS[i * 10:i * 10 + 10])
            with stoker.Loader({"x": stoker.Field(paths)}, batch_size=20, shuffle=True, to="numpy") as loader:
                batch = loader.next()
                self.assertEqual(loader.origins(batch), [(paths[i // 10], i % 10) for i in batch.indices])
                self.assertRaises(ValueError, loader.origins, batch.clone())


if __name__ == "__main__":
    unittest.main()
