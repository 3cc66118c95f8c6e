"""Tests of python -m stoker bench on loops whose counts follow from arithmetic."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy

MODULE = """
    import multiprocessing, sys, threading, time
    import numpy

    class Epoch:
        def __init__(self, batches):
            self.batches = batches
        def __len__(self):
            return self.batches
        def __iter__(self):
            for i in range(self.batches):
                yield {"image": numpy.zeros((8, 3), numpy.float32), "label": [numpy.zeros(8, numpy.int64)]}

    def loader():
        return Epoch(5)

    def generator():
        for i in range(7):
            yield (numpy.zeros((8, 3), numpy.float32),)

    def empty():
        yield []

    def count_three(batch):
        return 3

    def raises():
        yield numpy.zeros((8, 3))
        raise ValueError("a broken file")

    def numbers():
        yield 3

    def burn():
        while time.process_time() < 0.5:
            pass

    def with_child():
        process = multiprocessing.get_context("fork").Process(target=burn)
        process.start()
        while process.is_alive():
            yield numpy.zeros((8, 3))
            time.sleep(0.01)
        process.join()
        yield numpy.zeros((8, 3))

    def beside_a_thread():
        sys.setswitchinterval(1000)  # another thread runs only while this one gives up the GIL
        seen = []
        def work():
            while len(seen) < 3:
                seen.append(1)
                time.sleep(0)
        threading.Thread(target=work, daemon=True).start()
        for i in range(100):
            yield numpy.zeros((len(seen) + 1, 3))
            if len(seen) == 3:
                return

    not_callable = 3

    def not_iterable():
        return 3
"""


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(self.folder, "mine.py"), "w", encoding="utf8") as out:
            out.write(textwrap.dedent(MODULE))

    def bench(self, *words):
        return subprocess.run([sys.executable, "-m", "stoker", "bench", *words], cwd=self.folder, capture_output=True,
                              text=True, check=False)

    def measure(self, *words, repeats=1):
        ended = self.bench(*words, "--format=json", "--set", f"bench.repeats={repeats}")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads(ended.stdout)

    def test_counts(self):
        result = self.measure("mine:loader", "--set", "bench.batches=12", repeats=2)
        self.assertEqual(len(result["runs"]), 2)
        for run in result["runs"]:
            self.assertEqual((run["batch_count"], run["sample_count"], run["epoch_count"]), (12, 96, 2))
            self.assertEqual(run["batch_bytes"], 12 * (8 * 3 * 4 + 8 * 8))
        self.assertEqual(result["source"], "mine:loader")

    def test_a_generator_ends(self):
        run = self.measure("mine:generator", "--set", "bench.batches=100")["runs"][0]
        self.assertEqual((run["ended_by"], run["sample_count"]), ("end_of_data", 56))

    def test_samples(self):
        for how, each in (("mine:count_three", 3), ("label.0", 8), ("image", 8)):
            run = self.measure("mine:loader", f"--samples={how}", "--set", "bench.batches=10")["runs"][0]
            self.assertEqual(run["sample_count"], 10 * each, how)

    def test_exceptions_keep_their_traceback(self):
        ended = self.bench("mine:raises")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("ValueError: a broken file", ended.stderr)
        self.assertIn("in raises", ended.stderr)

    def test_mistakes(self):
        for words in (["mine:numbers"], ["mine:nothing"], ["none:loader"], ["mine:not_callable"],
                      ["mine:loader", "--set", "loader.num_workers=2"], ["mine:loader", "--set", "bench.consumer=touch"],
                      ["mine:loader", "--explain"], ["mine:not_iterable"], ["mine:loader", "--samples=foo"], ["missing.yaml"]):
            ended = self.bench(*words)
            self.assertEqual(ended.returncode, 2, f"{words}: {ended.stderr}")
            self.assertEqual(ended.stdout, "")
            self.assertNotIn("Traceback", ended.stderr)
            if words[-1] in ("mine:not_iterable", "--samples=foo"):
                self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)

    def test_wrong_samples_name_the_fields(self):
        self.assertIn("has image, label", self.bench("mine:loader", "--samples=foo").stderr)
        self.assertIn("items are numbered from 0 to 0", self.bench("mine:generator", "--samples=1").stderr)
        self.assertIn("is an empty list", self.bench("mine:empty", "--samples=0").stderr)

    def test_help_lists_bench(self):
        ended = subprocess.run([sys.executable, "-m", "stoker", "--help"], capture_output=True, text=True, check=True)
        for command in ("bench", "inspect", "verify"):
            self.assertIn(command, ended.stdout)

    def test_worker_processes_count(self):
        run = self.measure("mine:with_child", "--set", "bench.run_time=60s", "--set", "bench.ramp=0s")["runs"][0]
        usage = run["usage"]
        self.assertGreater(usage["cpu_user_ns"] + usage["cpu_system_ns"], 450_000_000)

    def test_a_step_gives_up_the_gil(self):
        run = self.measure("mine:beside_a_thread", "--set", "bench.step=20ms", "--set", "bench.batches=100")["runs"][0]
        self.assertEqual(run["ended_by"], "end_of_data")

    def test_a_config_is_measured_by_loadbench(self):
        numpy.save(os.path.join(self.folder, "x.npy"), numpy.zeros((64, 4), numpy.float32))
        with open(os.path.join(self.folder, "train.yaml"), "w", encoding="utf8") as out:
            out.write("dataset: {fields: {x: {path: x.npy}}}\nloader: {batch_size: 16}\n")
        short = ("--set", "bench.batches=8", "--set", "bench.limit=false")
        run = self.measure("train.yaml", *short)["runs"][0]
        self.assertEqual((run["batch_count"], run["sample_count"], run["batch_bytes"]), (8, 128, 8 * 16 * 16))
        result = self.measure("mine:loader", "--against=train.yaml", "--set", "bench.batches=8")
        figure = result["compared"]["figures"]["samples_per_s"]
        self.assertGreater(figure["before"], 0)
        self.assertGreater(figure["now"], 0)
        self.assertEqual(result["compared"]["differences"], [])

    def test_signals_are_python_s_again(self):
        code = ("import signal; from stoker import _core; _core.loadbench([b'loadbench', b'--version'])\n"
                "try: signal.raise_signal(signal.SIGINT)\n"
                "except KeyboardInterrupt: print('interrupted')")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertIn("interrupted", done.stdout)

    def test_an_interrupt_is_not_ignored(self):
        with open(os.path.join(self.folder, "rude.py"), "w", encoding="utf8") as out:
            out.write("class It:\n    def __iter__(self): return iter([])\n    def __len__(self): raise KeyboardInterrupt\n"
                      "def make(): return It()\n")
        done = self.bench("rude:make")
        self.assertIn("KeyboardInterrupt", done.stderr)

    def test_require(self):
        words = ["mine:loader", "--set", "bench.batches=5", "--set", "bench.repeats=1"]
        self.assertEqual(self.bench(*words, "--require", "samples_per_s>=1").returncode, 0)
        self.assertEqual(self.bench(*words, "--require", "samples_per_s>=1e15").returncode, 1)


if __name__ == "__main__":
    unittest.main()
