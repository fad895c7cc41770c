"""Transformer-XL: relative attention written out, and it learns."""

import re

import numpy as np
import tensorflow as tf

from gdp_grappler.workloads import transformer_xl
from helpers import training_steps

tf1 = tf.compat.v1
_BY_NAME = {w.name: w for w in transformer_xl.WORKLOADS}
_CONFIG = transformer_xl.TransformerXlConfig(1, batch=2, length=6, segment=3,
                                             width=8, inner=16, heads=2,
                                             head_width=4, words=11, dropout=0.)


def test_attention_is_written_out():
  draw = np.random.default_rng(0)
  x, memory = draw.normal(size=[2, 2, 3, 8])
  with tf.Graph().as_default():
    y = transformer_xl._attention(tf.constant(x, tf.float32),
                                  tf.constant(memory, tf.float32), _CONFIG)
    variables = {v.op.name: v for v in tf1.global_variables()}
    with training_steps.session() as session:
      values = {n: draw.normal(size=v.shape) for n, v in variables.items()}
      for name, variable in variables.items():
        session.run(variable.assign(values[name]))
      y = session.run(y)
  np.testing.assert_allclose(y, _attention(x, memory, values), rtol=1e-3,
                             atol=1e-4)


def _attention(x, memory, values):
  """The four terms of section 3.3, one query, key and head at a time."""
  batch, length, width = x.shape
  context = np.concatenate([memory, x], 1)
  heads, head_width = _CONFIG.heads, _CONFIG.head_width

  def projected(inputs, name):
    y = inputs @ values[f'{name}/kernel']
    return y.reshape(*inputs.shape[:-1], heads, head_width)

  query, key, value = (projected(x, 'query'), projected(context, 'key'),
                       projected(context, 'value'))
  mixed = np.zeros([batch, length, heads, head_width])
  for b, i, h in np.ndindex(batch, length, heads):
    u = values['content_bias'][h, 0]
    v = values['position_bias'][h, 0]
    seen = range(length + i + 1)
    scores = np.array([(query[b, i, h] + u) @ key[b, j, h] +
                       (query[b, i, h] + v) @ projected(
                           _position(length + i - j, width), 'position')[h]
                       for j in seen]) / np.sqrt(head_width)
    shares = np.exp(scores - scores.max())
    mixed[b, i, h] = shares / shares.sum() @ value[b, :length + i + 1, h]
  return mixed.reshape(batch, length, -1) @ values['join/kernel']


def _position(distance, width):
  rates = 10_000.**(-np.arange(0, width, 2) / width)
  return np.concatenate([np.sin(distance * rates), np.cos(distance * rates)])


def _gradients(segments):
  """Gradients of a loss by the memory the step is given, at each layer."""
  config = transformer_xl.TransformerXlConfig(2, batch=2, length=3 * segments,
                                              segment=3, width=8, inner=16,
                                              heads=2, head_width=4, words=11,
                                              dropout=0.)
  with tf.Graph().as_default() as graph:
    loss = transformer_xl.build(config)
    memories = [
        op.outputs[0] for op in graph.get_operations()
        if op.name.endswith('memory') and op.type == 'Placeholder'
    ]
    gradients = tf.gradients(loss, memories)
    draw = np.random.default_rng(0)
    feeds = {
        op.outputs[0]: training_steps.made_up(op.outputs[0], draw)
        for op in graph.get_operations() if op.type == 'Placeholder'
    }
    with training_steps.session() as session:
      session.run(tf1.global_variables_initializer())
      before = session.run(loss, feeds)
      feeds[memories[1]] = -feeds[memories[1]]
      return memories, session.run(gradients,
                                   feeds), before, session.run(loss, feeds)


def test_each_layer_attends_to_its_memory():
  memories, gradients, before, after = _gradients(1)
  assert [m.op.name for m in memories] == ['stage1/memory', 'stage2/memory']
  assert all(np.abs(gradient).max() > 0. for gradient in gradients)
  assert before != after


def test_later_segment_sends_no_gradient_through_its_memory():
  config = _CONFIG
  with tf.Graph().as_default() as graph:
    transformer_xl.build(config)
    stops = [
        op for op in graph.get_operations() if op.type == 'StopGradient' and
        re.fullmatch(r'stage1(_1)?/StopGradient', op.name)
    ]
    tables = [
        op for op in graph.get_operations() if op.name.endswith('/concat')
    ]
  assert len(stops) == config.length // config.segment
  # What the second segment attends to begins with the first one's input.
  assert tables[1].inputs[0] == stops[0].outputs[0]


def test_loss_falls():
  losses = training_steps.losses(_BY_NAME['transformer-xl-2@tiny'], 20)
  assert np.isfinite(losses).all()
  assert np.mean(losses[-3:]) < .7 * losses[0]


def test_sizes_of_the_papers():
  full = [w for w in transformer_xl.WORKLOADS if '@' not in w.name]
  assert [(w.name, w.paper_ops, w.num_devices) for w in full
         ] == [('transformer-xl-2', 2618, 2), ('transformer-xl-4', 5200, 4),
               ('transformer-xl-8', 10_400, 8)]
  for workload in full:
    config = workload.build.args[0]
    assert (config.batch, config.length, config.segment) == (64, 256, 64)
    assert (config.width, config.inner) == (500, 1000)
    assert (config.heads, config.head_width) == (10, 50)


def test_each_layer_is_a_stage():
  with tf.Graph().as_default() as graph:
    _BY_NAME['transformer-xl-4@tiny'].build()
  _, stages = training_steps.sizes(graph)
  assert stages == set(range(6))
