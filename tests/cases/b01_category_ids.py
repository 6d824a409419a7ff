"""B01: category ids that are not contiguous come through training and evaluation unchanged."""
import json

from product import BIN, Case, box, main


class CategoryIds(Case):
    category_ids = (3, 17)

    def test_a_model_of_two_classes_predicts_with_the_ids_of_the_data(self):
        self.pack_t8()
        self.succeed(self.train_words(epochs=1))
        predictions = self.root / "predictions.json"
        self.succeed([BIN / "yolohpc", "val", "--weights", self.root / "run/last.safetensors", "--data",
                      self.root / "packed", "--split", "val", "--imgsz", 64, "--conf", 0.0, "--device", "cpu",
                      "--predictions", predictions])
        ids = {entry["category_id"] for entry in json.loads(predictions.read_text())}
        self.assertEqual(ids, {3, 17})

    def test_the_ground_truth_as_predictions_is_perfect(self):
        truth = self.t8()
        ground = self.write_json("gt.json", truth)
        found = [{"image_id": a["image_id"], "category_id": a["category_id"], "bbox": a["bbox"], "score": 0.9}
                 for a in truth["annotations"]]
        detections = self.write_json("dt.json", found)
        self.succeed([BIN / "yolohpc", "eval", "--gt", ground, "--dt", detections, "--json",
                      self.root / "numbers.json"])
        self.assertEqual(json.loads((self.root / "numbers.json").read_text())["AP"], 1.0)

    def test_an_unknown_category_is_a_fault_that_names_annotation_and_id(self):
        self.draw_t8()
        content = self.t8()
        content["annotations"].append(box(1, 777, 9, [1, 1, 20, 20]))
        result = self.pack(content, "train")
        self.assertEqual(result.status, 3, result.output)
        self.assertIn("777", result.output)
        self.assertIn("9", result.output)
        self.assertFalse(list((self.root / "packed").glob("*.h5")) if (self.root / "packed").exists() else [])


if __name__ == "__main__":
    main()
