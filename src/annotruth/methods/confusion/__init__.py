"""A network and confusion matrices of its raters, learnt together."""
