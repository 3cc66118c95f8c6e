"""Tests of Ctrl-C at random times: the saved position is always right after the last batch that next returned,
and no slot is lost."""

import collections
import itertools
import operator
import random
import signal
import tempfile
import unittest

import stoker
from support import SLOW, Case

STEP = operator.attrgetter("global_step")


class Interrupts(Case):
    def setUp(self):
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)

    def test_next_is_interrupted(self):
        loader = stoker.Loader(SLOW)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        self.assertRaises(KeyboardInterrupt, loader.next)
        self.assertEqual(loader.state_dict()["step"], 0)
        self.fails(TimeoutError, "timeout", loader.close)

    def test_nothing_is_lost(self):
        """All code between the loader and the deque is C code, so signals are handled only in next."""
        field = stoker.Field(synthetic={"count": 4096, "shape": [16], "dtype": "i32", "read_time": "40us"})
        for options in ({}, {"copy": True, "to": "numpy"}):
            with self.subTest(**options):
                self.lose_nothing(stoker.Loader({"x": field}, batch_size=8, num_workers=2, prefetch=4, **options))

    def lose_nothing(self, loader):
        seen, interrupts, draw = collections.deque(), 0, random.Random(5)
        with loader:
            steps = len(loader)
            while interrupts < 600:
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 2e-3))
                    while True:
                        seen.extend(map(STEP, itertools.islice(iter(loader), 7)))
                except KeyboardInterrupt:
                    interrupts += 1
                state = loader.state_dict()
                self.assertEqual(state["epoch"] * steps + state["step"], len(seen))
                if interrupts % 50 == 0:
                    self.assertEqual(loader.stats["slots_leased"], 0)
            self.assertEqual(list(seen), list(range(len(seen))))
            self.assertGreater(len(seen), 1000)

    def test_interrupted_progress_of_a_plan(self):
        """An exception of `progress` is raised by stoker.prep, even if nothing is written."""
        job = {"dataset": {"fields": {"x": {"synthetic": {"count": 64, "shape": [2]}}}}, "output": {"path": "unused.npy"}}

        def progress(_):
            raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as folder:
            self.assertRaises(KeyboardInterrupt, stoker.prep, job, base_dir=folder, dry_run=True, progress=progress, interval=0)


if __name__ == "__main__":
    unittest.main()
