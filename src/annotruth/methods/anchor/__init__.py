"""The warm-up of pixel-cm and its kin: foretell everybody's drawings from the image, then choose whom to believe.

==================  ==========================================================================
``model``           what is trained, and what is found out on the way
``stages``          the schedule, and the loss of each stage
``choice``          which labelling is taken for true
``labellings``      what may be true: each rater's drawings, their vote, everybody's borders
``offsets``         by how many pixels each rater draws too large or too small
``foretelling``     how long a message must be that tells all labels by a labelling
``comparing``       labellings beside each other: messages, overlap, names of classes
==================  ==========================================================================
"""

from annotruth.methods.anchor.model import AnchoredModel, Foretells
from annotruth.methods.anchor.stages import FORETELLING, JOINT, Anchored

__all__ = ["FORETELLING", "JOINT", "Anchored", "AnchoredModel", "Foretells"]
