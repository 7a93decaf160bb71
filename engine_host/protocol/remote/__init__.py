"""Wire types of other machines: connections over ssh, facts, and our host there."""
