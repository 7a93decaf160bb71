"""`sndr requests`: what the endpoint is asked, and how it answers."""
