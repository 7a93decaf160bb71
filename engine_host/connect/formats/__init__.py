"""Files of settings in their formats, changed where needed and nowhere else."""
