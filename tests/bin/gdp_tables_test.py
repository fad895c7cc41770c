"""Tests of `gdp place --split_tables`."""

import tensorflow as tf

from gdp_grappler.bin import gdp

tf1 = tf.compat.v1


def test_the_program_is_told_layers(tmp_path, capsys):
  """It was told "words/table", which the option does not know."""
  with tf.Graph().as_default() as graph:
    with tf1.variable_scope('words', use_resource=True):
      words = tf1.get_variable('table', (1000, 8))
    loss = tf.reduce_sum(tf.gather(words, [1, 2]))
    tf1.train.AdagradOptimizer(.1).minimize(loss, name='train')
  path = tmp_path / 'step.pb'
  path.write_bytes(graph.as_graph_def().SerializeToString())
  assert gdp.run([
      'place',
      str(path), '--cluster=2xP100', '--placer=m_etf', '--split_tables=words=2',
      f'--output={tmp_path / "plan.json"}'
  ]) == 0
  assert '"split_tables": {"words": 2}' in capsys.readouterr().out
