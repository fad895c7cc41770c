"""The time of a step outside its graph: the program that calls the step.

The constants are seconds of the calling thread. They are near the seconds that
`python -m benchmarks.fit_step` measures on one core of an AMD EPYC of 2024,
with TensorFlow 2.21 and Keras 3.15. They depend more on Python than on the
machine. No device takes part.
"""

from __future__ import annotations

import dataclasses

from gdp_grappler.cluster import cluster as cluster_lib

# Python finds the function and binds its arguments, TensorFlow begins a step,
# and a thread of the dataset hands over the batch.
CALL_S = 2.5e-4
# Between two calls Keras' `fit` calls its callbacks and reads metrics.
FIT_S = 2.5e-4


def of_function(cluster: cluster_lib.Cluster) -> cluster_lib.Cluster:
  """Returns the cluster with the time to call a step as a function."""
  return dataclasses.replace(cluster, step_s=cluster.step_s + CALL_S)


def of_fit(cluster: cluster_lib.Cluster) -> cluster_lib.Cluster:
  """Returns the cluster with the time that Keras' `fit` adds to each step."""
  return dataclasses.replace(cluster, step_s=cluster.step_s + CALL_S + FIT_S)
