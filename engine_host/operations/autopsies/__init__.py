"""Records of engines that died: saved at the end, kept as files, read again."""
