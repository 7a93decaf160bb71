"""Wire types of the control protocol; the one package that both window and host import."""
