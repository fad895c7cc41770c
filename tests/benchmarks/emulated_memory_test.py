"""The least memory with which a plan runs on emulated GPUs."""

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import step as step_lib
from helpers import benchmarks
from helpers import clusters
from helpers import graphs

emulated_memory = benchmarks.module('emulated_memory')

CPU, GPU = 0, 2
TENSOR_BYTES = 1 << 20
# Two tensors are alive at a time.
PEAK_BYTES = 2 * TENSOR_BYTES


@pytest.fixture(name='step')
def _step():
  return step_lib.Step(graphs.chain(4, TENSOR_BYTES, flops=1.),
                       clusters.make_cluster(2))


def on(step, device):
  return placement_lib.Placement(np.full(4, device), step.cluster)


def look(step, device, precision=2):
  return emulated_memory._row('chain', 'nobody', step, on(step, device),
                              precision)


@pytest.fixture(name='asked')
def _asked(monkeypatch):
  """Stands in for emulated GPUs, which need 1.13 times the peak; memories."""
  asked = []

  def in_use(step, placement, memory_bytes):
    del step, placement
    asked.append(memory_bytes)
    return PEAK_BYTES + 7 if memory_bytes >= 1.13 * PEAK_BYTES - 1 else 0

  monkeypatch.setattr(emulated_memory, '_in_use', in_use)
  return asked


@pytest.mark.e2e  # Not with Bazel's unit tests.
def test_a_chain_needs_what_is_simulated(step):
  row = look(step, GPU, precision=50)
  assert row.peak_bytes == PEAK_BYTES
  assert (row.too_little, row.enough) == (.5, 1.)
  assert row.in_use == pytest.approx(1, abs=.05)


def test_the_least_memory_is_bracketed(step, asked):
  row = look(step, GPU, precision=1)
  assert (row.too_little, row.enough) == (1.12, 1.13)
  assert row.in_use == (PEAK_BYTES + 7) / PEAK_BYTES
  assert len(asked) < 10 and len(set(asked)) == len(asked)
  coarse = look(step, GPU, precision=20)
  assert coarse.too_little < 1.13 <= coarse.enough <= coarse.too_little + .2


def test_no_percent_is_divided(step, asked):
  """With --precision=0 the bisection never ended."""
  assert look(step, GPU, precision=0) == look(step, GPU, precision=1)
  assert asked


def test_a_plan_that_needs_much_more_is_followed(step, monkeypatch):
  monkeypatch.setattr(
      emulated_memory, '_in_use', lambda step, placement, memory_bytes:
      (memory_bytes >= 5 * PEAK_BYTES) * PEAK_BYTES)
  row = look(step, GPU)
  assert row.too_little < 5 <= row.enough <= row.too_little + .021
  monkeypatch.setattr(emulated_memory, '_in_use', lambda *_: 0)
  with pytest.raises(errors.GdpError, match='1600 % of the simulated peak'):
    look(step, GPU)


def test_a_plan_without_a_gpu_has_no_peak(step, asked):
  with pytest.raises(errors.GdpError, match='nothing on a GPU'):
    look(step, CPU)
  assert not asked


def test_another_failure_is_no_lack_of_memory(step, monkeypatch):
  monkeypatch.setattr(
      emulated_memory.emulator_lib.Emulator, 'evaluate',
      lambda self, graph, placement: evaluator_lib.Evaluation(
          float('inf'), (),
          (placement_lib.Violation('run', 'it hangs'),), False))
  with pytest.raises(errors.GdpError, match='it hangs'):
    look(step, GPU)


def test_a_page_gets_a_row_for_each_placer(monkeypatch, tmp_path):
  monkeypatch.setattr(emulated_memory, '_in_use',
                      lambda step, placement, memory_bytes: memory_bytes)
  page = tmp_path / 'page.md'
  page.write_text('<!-- Emulated memory; made by `x`. -->\n'
                  '<!-- End of Emulated memory. -->\n')
  assert emulated_memory.main([
      'rnnlm-2@tiny@2xP100', '--placers=human_expert,round_robin', '--quiet',
      f'--page={page}'
  ]) == 0
  rows = [line.split(' | ') for line in page.read_text().splitlines()[4:6]]
  assert [row[1] for row in rows] == ['human_expert', 'round_robin']
  assert all(row[2].endswith(' kB') for row in rows)
