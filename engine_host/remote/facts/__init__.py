"""Facts of other machines: read there by one small program that changes nothing, and understood here."""
