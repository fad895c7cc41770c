"""Places every op of a TensorFlow graph on the right device.

Belongs here: everything needed at run time to place a graph, on the standard
library, numpy, TensorFlow, absl and rich alone. Does not belong here: learning
how to place; that is `placer_model`.
"""

__version__ = '0.1.0'
