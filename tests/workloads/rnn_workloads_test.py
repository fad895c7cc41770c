"""RNNLM, GNMT and NMT: small variants run, and learn a batch by heart."""

import re

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.workloads import gnmt
from gdp_grappler.workloads import nmt
from gdp_grappler.workloads import rnnlm
from helpers import training_steps

tf1 = tf.compat.v1
_FAMILIES = (rnnlm, gnmt, nmt)
_BY_NAME = {w.name: w for family in _FAMILIES for w in family.WORKLOADS}
_WORDS = 20
_STEPS = 20


def _losses(workload):
  """Of steps on one batch of random words."""
  with tf.Graph().as_default() as graph:
    tf1.set_random_seed(0)
    loss = workload.build()
    step = workload.optimizer().minimize(loss)
    feeds = {
        op.outputs[0]:
            np.random.default_rng(0).integers(0, _WORDS,
                                              op.outputs[0].shape.as_list())
        for op in graph.get_operations() if op.type == 'Placeholder'
    }
    with training_steps.session() as session:
      session.run(tf1.global_variables_initializer())
      return [session.run((loss, step), feeds)[0] for _ in range(_STEPS)]


@pytest.mark.parametrize('name', ['rnnlm-2@tiny', 'gnmt-2@tiny', 'nmt-2@tiny'])
def test_loss_falls(name):
  losses = _losses(_BY_NAME[name])
  np.testing.assert_allclose(losses[0], np.log(_WORDS), rtol=.05)
  assert np.mean(losses[-5:]) < .8 * losses[0]


@pytest.mark.parametrize('name, num_stages', [('rnnlm-4@tiny', 5),
                                              ('gnmt-4@tiny', 10),
                                              ('nmt-4@tiny', 10)])
def test_every_stage_has_ops_and_weights(name, num_stages):
  with tf.Graph().as_default() as graph:
    loss = _BY_NAME[name].build()
    assert loss.shape == []
    of_ops = {
        int(k) for op in graph.get_operations()
        for k in re.findall(r'stage(\d+)', op.name)
    }
    of_weights = {
        int(re.match(r'stage(\d+)/', v.name)[1])
        for v in tf1.trainable_variables()
    }
    strays = [
        op.name for op in graph.get_operations()
        if 'stage' not in op.name and op.type != 'Placeholder'
    ]
  assert of_ops == of_weights == set(range(num_stages))
  assert len(strays) < 10


@pytest.mark.parametrize('family', _FAMILIES, ids=lambda f: f.__name__)
def test_sizes_of_the_papers(family):
  full = [w for w in family.WORKLOADS if '@' not in w.name]
  assert [w.num_devices for w in full] == [2, 4, 8]
  assert all('batch 64' in w.setting for w in full)
  assert {f'{w.name}@tiny' for w in full} <= set(_BY_NAME)
