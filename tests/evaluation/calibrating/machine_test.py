import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.calibrating import machine


def test_a_processor_has_a_name():
  assert machine.model(cluster_lib.local_name('CPU', 0)) == machine.cpu_model()
  assert machine.cpu_model()


def test_a_gpu_that_is_not_there():
  with pytest.raises(errors.MeasurementError, match='has no .*GPU:9'):
    machine.model(cluster_lib.local_name('GPU', 9))
