"""The things that services of the host look at: the machine with its GPUs, and the folders of models."""
