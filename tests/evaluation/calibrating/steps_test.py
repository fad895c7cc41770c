from gdp_grappler.evaluation.calibrating import steps
from gdp_grappler.evaluation.calibrating import suite


def test_the_host_and_coarse_sizes_come_before_finer_ones():
  names = [step.name for step in steps.all_steps()]
  assert names[:3] == ['ops', 'hops', 'MatMul']
  assert names.index('links') < names.index('MatMul, finer')
  assert len(set(names)) == len(names)


def test_sizes_of_a_step():
  kind = next(kind for kind in suite.KINDS if kind.op_type == 'Mul')
  coarse, finer = steps.CalibrationStep('Mul', kind), steps.CalibrationStep(
      'Mul, finer', kind, True)
  assert coarse.sizes == kind.coarse and finer.sizes == kind.finer
  assert not steps.CalibrationStep('ops').sizes
