"""What the bench lab keeps: runs and sweeps, in one SQLite file below the data folder."""
