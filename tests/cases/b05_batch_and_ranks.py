"""B05: a global batch that does not fit the ranks is refused; one that fits is dealt without overlap."""
from product import Case, main


class BatchAndRanks(Case):
    def refused(self, batch, expected):
        result = self.run_program(self.train_words(batch=batch, data="/nowhere"), ranks=4)
        self.assertEqual(result.status, 2, result.output)
        self.assertLess(result.seconds, 10)
        for word in expected:
            self.assertIn(word, result.output)
        self.assertFalse((self.root / "run").exists())

    def test_a_batch_that_cannot_be_cut_names_the_nearest(self):
        self.refused(6, ["6", "4 ranks", "8"])

    def test_a_batch_below_the_rank_count_names_the_least(self):
        self.refused(2, ["2", "4 ranks", "4"])

    def test_eight_images_over_four_ranks_are_eight_different_ones(self):
        self.pack_t8()
        self.succeed(self.train_words(batch=8, log_samples="on"), ranks=4)
        steps = [event for event in self.events() if event["event"] == "samples"]
        self.assertEqual(len(steps), 1)
        self.assertEqual(sorted(steps[0]["image_ids"]), list(range(1, 9)))


if __name__ == "__main__":
    main()
