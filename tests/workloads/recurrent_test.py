import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.workloads import recurrent

tf1 = tf.compat.v1


@pytest.fixture(name='graph', autouse=True)
def _graph():
  with tf.Graph().as_default() as graph:
    tf1.set_random_seed(0)
    yield graph


def _run(fetches):
  """Values of tensors and, by name without scopes, of all variables."""
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    return session.run(
        (fetches,
         {v.op.name.rsplit('/', 1)[1]: v for v in tf1.global_variables()}))


def _random(*shape):
  return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def test_lstm_is_that_of_the_equations():
  inputs = _random(2, 3, 5)
  lstm = recurrent.Lstm(0, 'lstm', 5, 4, 3)
  (outputs, state), weights = _run(([lstm.step(tf.constant(x)) for x in inputs],
                                    (lstm.state.cell, lstm.state.hidden)))
  cell = hidden = np.zeros((3, 4))
  for x, output in zip(inputs, outputs):
    i, j, f, o = (x @ weights[f'{gate}_kernel']
                  + hidden @ weights[f'{gate}_recurrent']
                  + weights[f'{gate}_bias']
                  for gate in ('input', 'update', 'forget', 'output'))
    cell = _sigmoid(f + 1) * cell + _sigmoid(i) * np.tanh(j)
    hidden = _sigmoid(o) * np.tanh(cell)
    np.testing.assert_allclose(output, hidden, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(state[0], cell, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(state[1], hidden, rtol=1e-4, atol=1e-6)


def test_attention_is_that_of_the_equations():
  memory, query = _random(6, 2, 3), _random(2, 4)
  attention = recurrent.Attention(0, list(map(tf.constant, memory)), 4, 5)
  context, weights = _run(attention.step(tf.constant(query)))
  hidden = np.tanh(memory @ weights['memory_kernel']
                   + query @ weights['query_kernel'])
  scores = np.exp(hidden @ weights['score'])[:, :, 0]
  shares = scores / scores.sum(axis=0)
  np.testing.assert_allclose(context, (shares[:, :, None] * memory).sum(axis=0),
                             rtol=1e-4)


@pytest.mark.parametrize('block', [1, 2, 3, 5])
def test_blocks_do_not_change_the_loss(block):
  outputs, labels = _random(5, 2, 3), np.arange(10).reshape(5, 2) % 7
  loss, weights = _run(
      recurrent.softmax_loss(0, list(map(tf.constant, outputs)),
                             tf.constant(labels), 7, block))
  logits = outputs @ weights['kernel'] + weights['bias']
  of_labels = np.take_along_axis(logits, labels[:, :, None], 2)[:, :, 0]
  expected = (np.log(np.exp(logits).sum(axis=2)) - of_labels).mean()
  np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_everything_is_in_its_stage(graph):
  lstm = recurrent.Lstm(3, 'lstm', 5, 4, 2)
  words = recurrent.embedded(3, 'embedding', 9, 5,
                             tf.constant([[1, 2], [3, 4]], name='stage3/ids'))
  for word in words:
    lstm.step(word, .5)
  mixer = recurrent.Mixer(3, 8, 4)
  mixer.step(lstm.state.cell, lstm.state.hidden)
  assert all(op.name.startswith('stage3') for op in graph.get_operations())
