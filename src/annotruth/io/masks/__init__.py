"""Masks as people save them: in colour, with soft edges, in layers, one file for each class, at another size.

``planes`` reads what a file holds, ``tally`` counts it over all files, ``rules`` says what values mean and what was
done, ``joining`` puts several files together into one mask.
"""
