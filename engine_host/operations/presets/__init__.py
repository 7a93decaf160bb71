"""Operations on presets: the catalogue, verdicts, files, and the start of one."""
