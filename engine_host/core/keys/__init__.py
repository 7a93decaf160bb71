"""Keys of the public endpoint: kept as hashes, with a name and what each may do."""
