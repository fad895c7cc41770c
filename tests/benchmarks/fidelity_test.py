"""The page of the fidelity study."""

from helpers import benchmarks
from helpers import clusters


def test_without_a_placement_there_is_no_picture(tmp_path):
  """The program failed after all graphs had been measured."""
  report = benchmarks.module('fidelity.report')
  report.write(tmp_path, [], [], clusters.make_cluster(2))
  assert 'fidelity.png' not in (tmp_path / 'README.md').read_text()
  assert not (tmp_path / 'fidelity.png').exists()
  assert (tmp_path / 'placements.csv').exists()
