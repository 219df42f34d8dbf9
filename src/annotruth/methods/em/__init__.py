"""A network and counted matrices, in turns."""
