"""B09: a run that stops and goes on ends with the bytes of one that never stopped."""
import csv
import json
import os
import signal
import struct
import subprocess
import time

from product import MPIEXEC, Case, main

TIMED = {"time", "images_per_s", "data_wait", "comm_wait", "validation_s", "peak_memory_mib"}


def read_checkpoint(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__")
    run = json.loads(metadata["run"])
    run.pop("elapsed_s")
    data = raw[8 + size:]
    return run, {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}


class ResumedRuns(Case):
    """Augmentation on, mosaic off from epoch 3, warm-up over 3 epochs, two iterations for an update."""

    options = {"epochs": 4, "close_mosaic": 2, "warmup_epochs": 3, "nbs": 8, "batch": 4, "keep": 9,
               "optimizer": "adamw", "lr0": 0.001}

    def rows(self, out):
        with open(self.root / out / "results.csv", newline="") as file:
            return [{k: v for k, v in row.items() if k not in TIMED} for row in csv.DictReader(file)]

    def newest(self, out):
        return sorted((self.root / out / "checkpoints").glob("step-*.safetensors"))[-1]

    def expect_same(self, a, b):
        self.assertEqual((self.root / a / "last.safetensors").read_bytes(),
                         (self.root / b / "last.safetensors").read_bytes())
        run_a, tensors_a = read_checkpoint(self.newest(a))
        run_b, tensors_b = read_checkpoint(self.newest(b))
        self.assertEqual(run_a, run_b)
        self.assertEqual(tensors_a.keys(), tensors_b.keys())
        for name, value in tensors_a.items():
            self.assertEqual(value, tensors_b[name], name)
        self.assertEqual(self.rows(a), self.rows(b))

    def stop_and_resume(self, ranks, first_updates):
        self.succeed(self.train_words("whole", **self.options), ranks=ranks)
        self.succeed(self.train_words("parts", max_steps=first_updates, **self.options), ranks=ranks)
        self.succeed(self.train_words("parts", resume="auto", **self.options), ranks=ranks)
        self.expect_same("whole", "parts")

    def test_one_rank_stops_between_epochs(self):
        self.pack_t8()
        self.stop_and_resume(None, 4)

    def test_two_ranks_stop_between_epochs(self):
        self.pack_t8()
        self.stop_and_resume(2, 4)

    def test_two_ranks_stop_inside_an_epoch(self):
        self.pack_t8()
        self.stop_and_resume(2, 3)

    def test_a_signal_stops_with_a_checkpoint_and_code_75(self):
        self.pack_t8()
        options = {**self.options, "epochs": 12}
        self.succeed(self.train_words("whole", **options), ranks=2)
        words = MPIEXEC + ["-np", "2"] + [str(word) for word in self.train_words("parts", **options)]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, cwd=self.root)
        results = self.root / "parts" / "results.csv"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (results.exists() and results.read_text().count("\n") > 1):
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGUSR1)
        output = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, 75, output)
        self.assertIn("signal 10", output)
        self.succeed(self.train_words("parts", resume="auto", **options), ranks=2)
        self.expect_same("whole", "parts")

    def test_changed_settings_are_refused_and_named(self):
        self.pack_t8()
        self.succeed(self.train_words("run", max_steps=1, **self.options))
        result = self.run_program(self.train_words("run", resume="auto", **{**self.options, "lr0": 0.01}))
        self.assertEqual(result.status, 2, result.output)
        self.assertIn("--lr0: 0.001 in the checkpoint, 0.01 now", result.output)

    def test_a_used_folder_is_refused(self):
        self.pack_t8()
        self.succeed(self.train_words("run", max_steps=1, **self.options))
        result = self.run_program(self.train_words("run", **self.options), ranks=2)
        self.assertEqual(result.status, 2, result.output)
        self.assertIn("--resume auto", result.output)
        self.succeed(self.train_words("run", exist_ok="on", max_steps=1, **self.options))

    def test_divergence_has_its_own_code(self):
        self.pack_t8()
        result = self.run_program(self.train_words("run", epochs=20, nbs=0, warmup_epochs=0, lr0=1e30, val_every=0))
        self.assertEqual(result.status, 5, result.output)
        self.assertIn("diverged", result.output)


if __name__ == "__main__":
    main()
