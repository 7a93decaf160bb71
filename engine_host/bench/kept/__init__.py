"""Runs and sweeps of the bench lab, kept in one SQLite file below the data folder."""
