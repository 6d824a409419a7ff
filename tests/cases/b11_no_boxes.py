"""B11: batches, training sets and validation sets without a single box."""
import csv
import math

from product import Case, main


class NoBoxes(Case):
    def rows(self, out="run"):
        with open(self.root / out / "results.csv", newline="") as file:
            return list(csv.DictReader(file))

    def without_boxes(self, images, ids=range(1, 9)):
        content = self.t8(ids)
        content["annotations"] = [a for a in content["annotations"] if a["image_id"] not in images]
        return content

    def test_most_images_are_background(self):
        self.pack_t8(train=self.without_boxes(range(1, 7)))
        self.succeed(self.train_words(epochs=2, mosaic=0), ranks=2)
        for row in self.rows():
            for name in ("train/box_loss", "train/cls_loss", "train/dfl_loss"):
                self.assertTrue(math.isfinite(float(row[name])), row)

    def test_no_box_at_all_trains_the_classes_only(self):
        self.pack_t8(train=self.without_boxes(range(1, 9)))
        self.succeed(self.train_words(epochs=1), ranks=2)
        row = self.rows()[0]
        self.assertEqual(float(row["train/box_loss"]), 0)
        self.assertEqual(float(row["train/dfl_loss"]), 0)
        self.assertGreater(float(row["train/cls_loss"]), 0)

    def test_a_validation_set_without_objects_has_no_score(self):
        self.pack_t8(val=self.without_boxes(range(1, 9), range(1, 4)))
        result = self.succeed(self.train_words(epochs=1))
        self.assertIn("undefined", result.output)
        self.assertEqual(self.rows()[0]["metrics/mAP50-95(B)"], "")
        self.assertFalse((self.root / "run/best.safetensors").exists())
        self.assertTrue((self.root / "run/last.safetensors").exists())


if __name__ == "__main__":
    main()
