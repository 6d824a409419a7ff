"""B03: boxes that stick out are clipped, empty and outside ones dropped; the image stays."""
import json
import math

from product import Case, box, main


class BoxesOutside(Case):
    def test_the_report_counts_them_and_training_goes_on(self):
        self.draw_t8()
        content = self.t8()
        content["annotations"] = [a for a in content["annotations"] if a["image_id"] != 1]
        for number, bbox in enumerate([[150, 90, 100, 80], [-10, -10, 30, 30], [300, 10, 20, 20],
                                       [10, 10, 0, 30], [20, 20, 40, 40]]):
            content["annotations"].append(box(1, 100 + number, 1, bbox))
        result = self.pack(content, "train", more=["--report", self.root / "report.json"])
        self.assertEqual(result.status, 0, result.output)
        report = json.loads((self.root / "report.json").read_text())
        self.assertEqual(report["images"], 8)
        self.assertEqual(report["boxes"], 14 + 3)
        converted = report["converted"]
        self.assertEqual(converted.get("box_clipped"), 2, converted)
        self.assertEqual(converted.get("box_outside"), 1, converted)
        self.assertEqual(converted.get("box_empty"), 1, converted)
        self.assertEqual(self.pack(self.t8(range(1, 4)), "val").status, 0)
        self.succeed(self.train_words(epochs=1, log_samples="on"))
        row = (self.root / "run/results.csv").read_text().splitlines()[1].split(",")
        for value in row[2:5]:
            self.assertTrue(math.isfinite(float(value)), row)


if __name__ == "__main__":
    main()
