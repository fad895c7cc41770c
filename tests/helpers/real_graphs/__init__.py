"""Small TensorFlow programs that make graphs of every kind.

Each function makes its variables and returns a `tf.function` (`FUNCTIONS`),
or builds a v1 graph and returns what to fetch and what to feed (`V1_GRAPHS`).
All are deterministic after `tf.random.set_seed`.
"""

from __future__ import annotations

import types

from helpers.real_graphs import base
from helpers.real_graphs import calls
from helpers.real_graphs import data_types
from helpers.real_graphs import host_ops
from helpers.real_graphs import keras_steps
from helpers.real_graphs import loops
from helpers.real_graphs import random_numbers
from helpers.real_graphs import v1_host_ops
from helpers.real_graphs import v1_loops
from helpers.real_graphs import v1_training
from helpers.real_graphs import variables

# Each has registered its programs when it was imported.
KINDS: tuple[types.ModuleType,
             ...] = (keras_steps, loops, variables, host_ops, random_numbers,
                     data_types, calls, v1_training, v1_loops, v1_host_ops)
FUNCTIONS = base.FUNCTIONS
V1_GRAPHS = base.V1_GRAPHS
