"""Commands and files that have to work as they are: bench step, a written configuration, one run per folder."""
import json
import subprocess
import time

from product import BIN, Case, main


class BenchAndConfig(Case):
    def test_bench_step_gives_figures_and_their_limit(self):
        figures = self.root / "step.json"
        self.succeed([BIN / "yolohpc", "bench", "step", "--imgsz", 64, "--batch", 4, "--steps", 1, "--repeats", 2,
                      "--warmup-steps", 1, "--json", figures], ranks=2)
        found = json.loads(figures.read_text())
        self.assertEqual(found["ranks"], 2)
        for name in ("images_per_s", "bare_step_images_per_s", "ratio_to_bare_step"):
            self.assertGreater(found[name], 0, name)

    def test_a_written_configuration_starts_the_same_run(self):
        self.pack_t8()
        words = [BIN / "yolohpc", "train", "--data", self.root / "packed", "--imgsz", 64, "--batch", 4, "--epochs", 1,
                 "--threads", 1, "--out"]
        self.succeed(words + [self.root / "first"])
        self.succeed([BIN / "yolohpc", "train", "--config", self.root / "first/config.cfg", "--out", self.root / "second"])
        self.assertEqual((self.root / "first/last.safetensors").read_bytes(),
                         (self.root / "second/last.safetensors").read_bytes())
        self.succeed([BIN / "yolohpc", "train", "--config", self.root / "first/config.cfg", "--resume", "auto"])

    def test_a_start_that_failed_does_not_use_up_the_folder(self):
        self.pack_t8()
        result = self.run_program(self.train_words(model="nonsense"))
        self.assertEqual(result.status, 2, result.output)
        self.succeed(self.train_words())

    def test_two_runs_do_not_share_a_folder(self):
        self.pack_t8()
        words = [str(word) for word in self.train_words(epochs=200)]
        first = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not (self.root / "run/last.safetensors").exists():
                time.sleep(0.05)
            result = self.run_program(self.train_words(epochs=200, resume="auto"))
            self.assertEqual(result.status, 2, result.output)
            self.assertIn(f"process {first.pid}", result.output)
        finally:
            first.kill()
            first.wait()
        self.succeed(self.train_words(epochs=200, resume="auto", max_steps=1))

    def test_json_on_standard_output_is_json_alone(self):
        truth = self.write_json("gt.json", self.t8())
        found = self.write_json("dt.json", [])
        done = subprocess.run([BIN / "yolohpc", "eval", "--gt", truth, "--dt", found, "--json", "-"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        self.assertEqual(json.loads(done.stdout)["AP"], 0.0)


if __name__ == "__main__":
    main()
