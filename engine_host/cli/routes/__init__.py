"""`sndr routes`: what public model ids stand for."""
