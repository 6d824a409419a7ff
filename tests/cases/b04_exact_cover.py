"""B04: three validation images on 1 to 4 ranks give the same numbers, each image seen once."""
import json

from product import BIN, Case, main


class ExactCover(Case):
    def test_rank_count_and_batch_change_nothing(self):
        self.pack_t8()
        self.succeed(self.train_words(epochs=3, optimizer="adamw", lr0=0.002))
        results = {}
        for ranks in (1, 2, 3, 4):
            for batch in (1, 2):
                numbers = self.root / f"numbers{ranks}{batch}.json"
                predictions = self.root / f"predictions{ranks}{batch}.json"
                self.succeed([BIN / "yolohpc", "val", "--weights", self.root / "run/last.safetensors", "--data",
                              self.root / "packed", "--split", "val", "--imgsz", 64, "--batch", batch * ranks,
                              "--device", "cpu", "--threads", 1, "--json", numbers, "--predictions",
                              predictions], ranks=ranks)
                found = json.loads(numbers.read_text())
                results[ranks, batch] = found
                self.assertEqual(found["images"], 3)
        first = results[1, 1]
        for key, found in results.items():
            for name in ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"):
                self.assertAlmostEqual(found[name], first[name], delta=1e-9, msg=f"{key} {name}")


if __name__ == "__main__":
    main()
