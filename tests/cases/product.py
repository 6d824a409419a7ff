"""The product as a user meets it: small data sets, the programs, and what they print.

Only the standard library, so that the cases run wherever the program was built.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from pathlib import Path

BIN = Path(os.environ["YOLOHPC_BIN_DIR"])
MPIEXEC = os.environ.get("MPIEXEC_WORDS", "mpirun").split()


def write_png(path, width, height, seed):
    """Smooth random noise: a coarse grid of colours, interpolated."""
    draw = random.Random(seed)
    cells = 6
    grid = [[[draw.randrange(256) for _ in range(3)] for _ in range(cells + 1)] for _ in range(cells + 1)]
    rows = bytearray()
    for y in range(height):
        fy = y * cells / height
        iy, ty = int(fy), fy - int(fy)
        rows.append(0)  # PNG filter: none
        for x in range(width):
            fx = x * cells / width
            ix, tx = int(fx), fx - int(fx)
            for c in range(3):
                top = grid[iy][ix][c] * (1 - tx) + grid[iy][ix + 1][c] * tx
                low = grid[iy + 1][ix][c] * (1 - tx) + grid[iy + 1][ix + 1][c] * tx
                rows.append(int(top * (1 - ty) + low * ty))

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows)))
                     + chunk(b"IEND", b""))


def box(image, number, category, bbox, **more):
    return {"id": number, "image_id": image, "category_id": category, "bbox": bbox,
            "area": bbox[2] * bbox[3], "iscrowd": 0, **more}


class Result:
    def __init__(self, status, output, seconds):
        self.status, self.output, self.seconds = status, output, seconds


class Case(unittest.TestCase):
    """Base data T8: 8 images 200 x 120, ids 1-8, 2 boxes each, two categories; val = images 1-3."""

    category_ids = (1, 2)

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="yolohpc-case-")
        self.root = Path(self._folder.name)
        self.images = self.root / "images"
        self.images.mkdir()

    def tearDown(self):
        self._folder.cleanup()

    def draw_t8(self, count=8):
        for i in range(1, count + 1):
            write_png(self.images / f"{i}.png", 200, 120, i)

    def t8(self, ids=range(1, 9)):
        first, second = self.category_ids
        annotations = []
        for i in ids:
            annotations.append(box(i, 2 * i, first, [10 + 5 * i, 20, 60, 50]))
            annotations.append(box(i, 2 * i + 1, second, [90, 30 + 2 * i, 70, 40]))
        return {"images": [{"id": i, "file_name": f"{i}.png", "width": 200, "height": 120} for i in ids],
                "annotations": annotations,
                "categories": [{"id": first, "name": "a"}, {"id": second, "name": "b"}]}

    def write_json(self, name, content):
        path = self.root / name
        path.write_text(json.dumps(content))
        return path

    def run_program(self, words, ranks=None, env=None, timeout=100, clean_env=False):
        command = [str(word) for word in words]
        if ranks:
            command = MPIEXEC + ["-np", str(ranks)] + command
        environment = {k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ} if clean_env \
            else dict(os.environ)
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "ASAN_OPTIONS"):
            if name in os.environ:
                environment[name] = os.environ[name]
        environment.update(env or {})
        start = time.monotonic()
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout, cwd=self.root, text=True,
                              errors="replace", check=False)
        return Result(done.returncode, done.stdout, time.monotonic() - start)

    def succeed(self, words, **how):
        result = self.run_program(words, **how)
        self.assertEqual(result.status, 0, f"{words}\n{result.output}")
        return result

    def pack(self, content, split, out=None, ranks=None, more=()):
        out = out or self.root / "packed"
        annotations = self.write_json(f"{split}.instances.json", content)
        return self.run_program([BIN / "yolohpc-pack", "--images", self.images, "--annotations", annotations,
                                 "--split", split, "--out", out, *more], ranks=ranks)

    def pack_t8(self, train=None, val=None):
        self.draw_t8()
        for split, content in (("train", train or self.t8()), ("val", val or self.t8(range(1, 4)))):
            result = self.pack(content, split)
            self.assertEqual(result.status, 0, result.output)
        return self.root / "packed"

    def train_words(self, out="run", **options):
        settings = {"data": self.root / "packed", "model": "yolo11n", "imgsz": 64, "seed": 0, "epochs": 1,
                    "batch": 4, "out": self.root / out, "device": "cpu", "workers": 1, "threads": 1,
                    "optimizer": "sgd", **options}
        words = [BIN / "yolohpc", "train"]
        for name, value in settings.items():
            words += [f"--{name.replace('_', '-')}", value]
        return words

    def events(self, out="run"):
        return [json.loads(line) for line in (self.root / out / "log.jsonl").read_text().splitlines()]


def main():
    program = unittest.main(exit=False, verbosity=2)
    ran, skipped = program.result.testsRun, len(program.result.skipped)
    if not program.result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if ran and ran == skipped else 0)
