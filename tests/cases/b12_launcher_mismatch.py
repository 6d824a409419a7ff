"""B12: a launcher that speaks of four tasks and an MPI that sees one process do not start four runs."""
from product import Case, main


class LauncherMismatch(Case):
    def setUp(self):
        super().setUp()
        self.pack_t8()

    def refused(self, environment):
        result = self.run_program(self.train_words(), env=environment, timeout=30)
        self.assertNotEqual(result.status, 0, result.output)
        self.assertLess(result.seconds, 5)
        self.assertIn("4", result.output)
        self.assertIn("1", result.output)
        self.assertFalse((self.root / "run").exists())

    def test_slurm_speaks_of_four_tasks(self):
        self.refused({"SLURM_NTASKS": "4", "SLURM_PROCID": "2"})

    def test_open_mpi_speaks_of_four_tasks(self):
        self.refused({"OMPI_COMM_WORLD_SIZE": "4"})

    def test_pmi_speaks_of_four_tasks(self):
        self.refused({"PMI_SIZE": "4"})

    def test_one_process_on_purpose_runs(self):
        self.succeed(self.train_words(single_process="on"), env={"SLURM_NTASKS": "4", "SLURM_PROCID": "0"})

    def test_a_clean_environment_runs(self):
        self.succeed(self.train_words(), clean_env=True)


if __name__ == "__main__":
    main()
