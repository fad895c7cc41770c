"""Compares predicted with measured gains of cutting one card in two.

Run it from the repository with `python -m benchmarks.recorded_split`. For each
model a placer places the training step on two logical GPUs of one H100, whose
kernels share the card's multiprocessors and bandwidth
(`evaluation.costs.card_shares`). The gain is the step on the whole card over
this step. Gains were measured on one H100 with TensorFlow 2.21, in `fit`
without XLA. No figure of the simulator was fitted to them.

The graphs of the CNN and the MLP are those that the pass received on the card.
The other two, the mixture of experts and the two towers, are traced here.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys

from benchmarks import keras_models
from benchmarks import recorded_keras
from benchmarks import tables
from gdp_grappler.api import subjects
from gdp_grappler.cluster import presets
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.plugin import step_costs

WHOLE, CUT = '1xH100', '1xH100:2'
# Measured gain: unplaced step over placed step of `fit` on two logical GPUs.
MEASURED_GAINS = {'cnn': 1.39, 'experts': 1.25, 'two_towers': 1.02, 'mlp': 1.}
_RECORDED = ('cnn', 'mlp')


@dataclasses.dataclass(frozen=True)
class Row:
  """Predictions for a model on one card.

  Attributes:
    model: Name of the model.
    whole_s: Simulated step on the card as one GPU.
    cut_s: Simulated step of the placement on the card cut in two.
    on_second: Share of the kernels' seconds that is on the second GPU.
    card_share: Share of the card that kernels can use, on average over their
      seconds.
    measured_gain: Measured gain of a real `fit`.
  """

  model: str
  whole_s: float
  cut_s: float
  on_second: float
  card_share: float
  measured_gain: float | None

  @property
  def gain(self) -> float:
    """Predicted gain of the cut."""
    return self.whole_s / self.cut_s


def predict(model: str, placer: str, seconds: float) -> Row:
  """Places the training step of a model over a card that is cut in two.

  Args:
    model: A model of `MEASURED_GAINS`, or another model of `keras_models`.
    placer: Name of a registered placer.
    seconds: Time limit of the placer, in seconds.
  """
  cluster = step_costs.of_fit(presets.preset(CUT))
  step = step_lib.Step(_graph(model), cluster)
  problem = dataclasses.replace(step.problem(), time_budget_s=seconds)
  placement = registry.create(placer, None).place(problem)
  simulator = step.simulator()
  op_seconds = simulator.op_seconds(step.graph)
  gpus = cluster.accelerators
  second_s = op_seconds[placement.devices == gpus[1], gpus[1]].sum()
  all_s = op_seconds[:, gpus[0]]
  shares = simulator.cost_model.card_shares(step.graph, cluster,
                                            op_seconds)[:, gpus[0]]
  whole_s = recorded_keras.step_s(step.graph,
                                  step_costs.of_fit(presets.preset(WHOLE)))
  # A model without a gain stays on the whole card.
  cut_s = min(simulator.evaluate(step.graph, placement).step_time_s, whole_s)
  return Row(model, whole_s, cut_s, second_s / all_s.sum(),
             (all_s * shares).sum() / all_s.sum(), MEASURED_GAINS.get(model))


def _graph(model: str) -> op_graph.OpGraph:
  if model in _RECORDED:
    return recorded_keras.read(recorded_keras.FOLDER / f'{model}.pb.gz')
  return subjects.read(getattr(keras_models, model)(), CUT,
                       subjects.Reading()).step.graph


def _find(arguments: argparse.Namespace) -> tables.Table:
  rows = [
      predict(model, arguments.placer, arguments.seconds)
      for model in arguments.models
  ]
  cells = [(row.model, tables.milliseconds(row.whole_s),
            tables.milliseconds(row.cut_s), f'{row.gain:.2f}',
            '-' if row.measured_gain is None else f'{row.measured_gain:.2f}',
            f'{100 * row.on_second:.0f} %', f'{100 * row.card_share:.0f} %')
           for row in rows]
  return tables.Table(
      'One H100 cut in two: simulated steps, simulated and measured gain',
      ('model', 'whole', 'cut in two', 'simulated', 'measured', 'on second',
       'share of card'), cells,
      [{**dataclasses.asdict(row), 'gain': row.gain} for row in rows])


main = tables.program(
    'recorded_split', __doc__, 'Recorded split', _find,
    tables.option('models', nargs='*', default=list(MEASURED_GAINS)),
    tables.option('--placer', default=registry.DEFAULT),
    tables.option('--seconds', type=float, default=10.))

if __name__ == '__main__':
  sys.exit(main())
