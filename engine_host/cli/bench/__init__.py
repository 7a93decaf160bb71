"""`sndr bench` and `sndr prove`: measurements on this machine."""
