"""Executions of ops in loops and conditions, as TensorFlow counts them."""

import collections
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.measuring import runnable
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.control_flow import frames
from gdp_grappler.graph.sources import sources
from helpers import clusters
from helpers import graph_defs
from helpers import real_graphs

tf1 = tf.compat.v1
_TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'


def _counted(source):
  """How often a session runs each op of a graph."""
  graph = runnable.convert(source)
  for node in graph.graph_def.node:
    node.device = ''
  config = tf1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  config.graph_options.optimizer_options.opt_level = -1
  metadata = tf1.RunMetadata()
  with tf.Graph().as_default() as imported:
    tf.graph_util.import_graph_def(graph.graph_def, name='')
    with tf1.Session(config=config) as session:
      session.run(imported.get_operation_by_name(graph.initializer))
      session.run([imported.get_operation_by_name(t) for t in graph.targets],
                  options=tf1.RunOptions(trace_level=3), run_metadata=metadata)
  return collections.Counter(stats.node_name
                             for device in metadata.step_stats.dev_stats
                             for stats in device.node_stats)


def _wrong(source, said):
  """Ops whose executions differ from what TensorFlow counts."""
  graph = graph_def_io.read(source, tell=said.append)
  counted = _counted(source)
  return {
      name: (runs, counted[name]) for name, kind, runs in zip(
          graph.names, graph.op_types, graph.executions.tolist())
      if kind not in ('_Arg', '_Retval', 'NoOp') and runs != counted[name]
  }


@pytest.mark.parametrize('name', [
    'while_loop_gradient', 'nested_while_loops', 'loops_one_after_another',
    'map_fn_and_scan', 'tensor_arrays', 'add_n_of_tensor_lists',
    'random_generators', 'print_and_assert', 'optionals'
])
def test_executions_are_those_of_a_real_run(name):
  tf.keras.utils.set_random_seed(1)
  said = []
  source = source_graph.SourceGraph(
      name, graph_defs.optimized(real_graphs.FUNCTIONS[name]()))
  assert not _wrong(source, said)
  assert not said


def _runs(graph):
  """How often an op of each type runs."""
  return dict(zip(graph.op_types, graph.executions.tolist()))


def test_break_may_only_end_a_loop_earlier():
  graph = graph_def_io.read(
      source_graph.SourceGraph(
          'break',
          graph_defs.optimized(
              real_graphs.FUNCTIONS['break_continue_and_random']())))
  # `for i in tf.range(10)` with a `break` that depends on data.
  assert graph.executions[graph.op_types.index('LoopCond')] == 11


def test_stored_lstm_has_twelve_steps():
  graph = graph_def_io.read(sources.load(str(_TESTDATA / 'lstm_train_step.pb')))
  runs = _runs(graph)
  assert runs['TensorListPushBack'] == runs['NextIteration'] == 12
  assert runs['LoopCond'] == runs['Merge'] == 13
  assert runs['Exit'] == 1


def _v1_loop(make):

  def build():
    tf1.disable_control_flow_v2()
    try:
      make()
    finally:
      tf1.enable_control_flow_v2()

  return source_graph.SourceGraph('loop', graph_defs.built(build))


def _sines(limit):
  return tf1.while_loop(lambda i, _: i < limit, lambda i, x: (i + 1, tf.sin(x)),
                        [0, tf.ones([2])])[1]


@pytest.mark.parametrize('start, limit, step, compare, trips',
                         [(0, 7, 1, tf.less, 7), (0, 7, 2, tf.less, 4),
                          (1, 7, 2, tf.less_equal, 4), (5, 5, 1, tf.less, 0),
                          (9, 5, 1, tf.less, 0), (9, 5, -2, tf.greater, 2),
                          (9, 5, -2, tf.greater_equal, 3),
                          (2, 6, 2, tf.not_equal, 2)])
def test_counters(start, limit, step, compare, trips):
  source = _v1_loop(lambda: tf1.while_loop(lambda i, _: compare(
      i, limit), lambda i, x: (i + step, x * 2.), [start, tf.ones([2])]))
  said = []
  assert not _wrong(source, said) and not said
  graph = graph_def_io.read(source)
  runs = _runs(graph)
  assert runs['Mul'] == trips and runs['LoopCond'] == trips + 1


def test_dynamic_rnn_and_its_gradient():

  def make():
    x = tf1.placeholder(tf.float32, [2, 6, 3])
    w = tf1.get_variable('w', [3, 3])
    arrays = tf.TensorArray(tf.float32, 6).unstack(tf.transpose(x, [1, 0, 2]))
    time_steps = tf.shape(x)[1]
    _, state = tf1.while_loop(
        lambda i, _: i < tf.minimum(time_steps, 100), lambda i, h:
        (i + 1, tf.tanh((h + arrays.read(i)) @ w)), [0, tf.zeros([2, 3])])
    tf.gradients(tf.reduce_sum(state), w)

  source = _v1_loop(make)
  said = []
  graph = graph_def_io.read(source, tell=said.append)
  runs = collections.defaultdict(set)
  for kind, count in zip(graph.op_types, graph.executions.tolist()):
    runs[kind].add(count)
  assert not said and runs['Tanh'] == runs['TanhGrad'] == {6}


def test_unknown_lengths_are_the_callers_and_said_once():
  source = _v1_loop(lambda: _sines(tf1.placeholder(tf.int32, [])))
  said = []
  graph = graph_def_io.read(source, trip_count=9, tell=said.append)
  assert _runs(graph)['Sin'] == 9
  assert said == [
      '1 while loop of unknown length ("while/while_context") '
      'counted as 9 iterations; trip_count sets the number.'
  ]


@pytest.mark.parametrize('limits, sines', [([None] * 3, 32.), ([None] * 2, 32.),
                                           ([None], 32.),
                                           ([None, 5, None], 160.),
                                           ([5, None, 7], 1120.)])
def test_unknown_lengths_within_one_another_are_one(limits, sines):
  # Three loops made 32,768 turns: 1026 ms of a function that takes 0.9.
  def nested(x, rest, length):
    if not rest:
      return tf.sin(x)
    most = length if rest[0] is None else rest[0]
    return tf1.while_loop(lambda i, _: i < most, lambda i, y:
                          (i + 1, nested(y, rest[1:], length)), [0, x])[1]

  source = _v1_loop(
      lambda: nested(tf.ones([2]), limits, tf1.placeholder(tf.int32, [])))
  said = []
  graph = graph_def_io.read(source, tell=said.append)
  assert _runs(graph)['Sin'] == pytest.approx(sines)
  together = ', nested loops together' if limits.count(None) > 1 else ''
  assert f'counted as 32 iterations{together};' in said[0]


def test_of_loops_beside_one_another_each_has_its_turns():

  def make():
    limit = tf1.placeholder(tf.int32, [])

    def loop(x, body):
      return tf1.while_loop(lambda i, _: i < limit, lambda i, y:
                            (i + 1, body(y)), [0, x])[1]

    loop(loop(tf.ones([2]), tf.sin), tf.cos)
    loop(tf.ones([2]), lambda x: loop(loop(x, tf.tan), tf.exp))

  graph = graph_def_io.read(_v1_loop(make), trip_count=9)
  runs = _runs(graph)
  assert (runs['Sin'], runs['Cos']) == (9, 9)
  assert runs['Tan'] == runs['Exp'] == pytest.approx(9)


def test_lengths_from_unknown_dimensions_are_the_callers():
  source = _v1_loop(
      lambda: _sines(tf.shape(tf1.placeholder(tf.float32, [None, 3]))[0]))
  graph = graph_def_io.read(source, unknown_dim=11)
  assert _runs(graph)['Sin'] == 11


def _while_and(x):
  i = 0
  while i < 6 and not tf.reduce_all(x > 9.):
    x, i = tf.sin(x), i + 1


def _while_three_tests_and_break(x):
  i, error = tf.constant(0), tf.constant(9.)
  while tf.reduce_any(x < 9.) and error > -9. and i < 6:
    x = tf.sin(x)
    error = tf.reduce_sum(x)
    i += 1
    if error > 99.:
      break


def _until_or(x):
  i, done = tf.constant(0), tf.constant(False)
  while not (i >= 3 or i >= 6 or done):
    x, i = tf.sin(x), i + 1
    done = tf.reduce_all(x > 9.)


def _while_or(x):
  i = tf.constant(0)
  while i < 3 or i < 6:
    x, i = tf.sin(x), i + 1


def _until_done(x):
  i, done = tf.constant(0), tf.constant(False)
  while not done:
    x, i = tf.sin(x), i + 1
    done = tf.equal(i, 6)


def _until_done_in_a_branch(x):
  i, done = tf.constant(0), tf.constant(False)
  while not done:
    x, i = tf.sin(x), i + 1
    if i >= 6:
      done = True


def _while_going(x):
  i, going = tf.constant(0), tf.constant(True)
  while going:
    x, i = tf.sin(x), i + 1
    going = going and i < 6


def _doubled(x):
  i = tf.constant(1)
  while i < 40:
    x, i = tf.sin(x), i * 2


def _halved(x):
  i = tf.constant(63)
  while not i <= 0:
    x, i = tf.sin(x), i // 2


@pytest.mark.parametrize('loop', [
    _while_and, _while_three_tests_and_break, _until_or, _while_or, _until_done,
    _until_done_in_a_branch, _while_going, _doubled, _halved
])
def test_tests_of_hand_written_loops_are_read(loop):
  """Loops of 6 iterations that AutoGraph converted counted as 32."""
  function = tf.function(loop)
  source = source_graph.SourceGraph(
      'loop', graph_defs.optimized(lambda: function(tf.ones([4]))))
  said = []
  graph = graph_def_io.read(source, tell=said.append)
  sine = graph.op_types.index('Sin')
  assert not said
  assert graph.executions[sine] == (3 if loop is _until_or else 6)
  assert graph.executions[sine] == _counted(source)[graph.names[sine]]


def test_a_flag_does_not_hide_the_counter_of_a_loop():
  """A test of the counter left the mean of the counter unknown."""

  @tf.function
  def function(x, limit):
    for i in tf.range(5):
      for _ in tf.range(i):
        x = tf.sin(x)
      if i * i > limit:
        break
    return x

  source = source_graph.SourceGraph(
      'loop',
      graph_defs.optimized(lambda: function(tf.ones([4]), tf.constant(99))))
  said = []
  graph = graph_def_io.read(source, tell=said.append)
  assert _runs(graph)['Sin'] == 10
  assert not said


def test_results_wait_for_the_loop_and_time_is_proportional():
  prices = []
  for trips in (1, 5):
    graph = graph_def_io.read(_v1_loop(lambda n=trips: tf.cos(_sines(n))))
    seconds = graph.executions * [t in ('Sin', 'Cos') for t in graph.op_types]
    cluster = clusters.make_cluster(1)
    device = np.ones(graph.num_ops, np.int32)
    sim = simulator.Simulator(cluster, clusters.FixedCosts(seconds))
    schedule = sim.schedule(graph, placement_lib.Placement(device, cluster))
    sine, cosine = (graph.op_types.index(t) for t in ('Sin', 'Cos'))
    assert schedule.start_s[cosine] >= schedule.end_s[sine] == trips
    prices.append(schedule.step_time_s)
    loop = [
        g for g, t in zip(graph.groups, graph.op_types)
        if t in ('Enter', 'Merge', 'Sin', 'Exit')
    ]
    assert len(set(loop)) == 1
  assert prices == [2, 6]


def _cond(predicate):
  return _v1_loop(lambda: tf1.cond(predicate(), lambda: tf.sin(
      tf.ones([4]) * 2.), lambda: tf.ones([4])))


@pytest.mark.parametrize('predicate, sine',
                         [(lambda: tf1.placeholder(tf.bool, []), 1),
                          (lambda: tf.constant(False), 0),
                          (lambda: tf.constant(True), 1)])
def test_the_dearer_branch_runs_unless_it_cannot(predicate, sine):
  graph = graph_def_io.read(_cond(predicate))
  runs = _runs(graph)
  assert runs['Sin'] == sine and runs['Merge'] == runs['Switch'] == 1


@pytest.mark.parametrize('nodes', [[
    ('s', 'Switch', ['a', 'p']), ('m', 'Merge', ['s', 's:1'])
], [('e', 'Enter', ['a'])], [
    ('x', 'Exit', ['a'])
], [('n', 'NextIteration', ['a']),
    ('m', 'Merge', ['a', 'n'])], [('c', 'LoopCond', ['p'])]])
def test_malformed_frames_count_as_nothing_special(nodes):
  attributes = {
      'T': graph_defs.FLOAT, 'N': {'i': 2}, 'frame_name': b'f',
      'is_constant': {'b': False}, 'parallel_iterations': {'i': 1}
  }
  made = [
      graph_defs.node('a', 'Placeholder', dtype=graph_defs.FLOAT),
      graph_defs.node('p', 'Placeholder', dtype={'type': 10})
  ]
  for name, op, inputs in nodes:
    used = {
        'Switch': ['T'], 'Merge': ['T', 'N'], 'Exit': ['T'],
        'NextIteration': ['T'], 'LoopCond': []
    }.get(op, ['T', 'frame_name', 'is_constant', 'parallel_iterations'])
    made.append(
        graph_defs.node(name, op, inputs, **{k: attributes[k] for k in used}))
  graph = graph_def_io.read(graph_defs.source(graph_defs.graph_def(*made)))
  assert (graph.executions == 1).all()


def test_graphs_without_loops_are_as_before():
  graph = graph_def_io.read(sources.load(str(_TESTDATA
                                             / 'dense_train_step.pb')))
  assert (graph.executions == 1).all()
  assert graph.fingerprint == 'b933ae33a4851c52'


def test_a_condition_at_the_end_of_a_deep_chain_is_read():
  """Each op of the chain took five frames of Python's stack."""
  kinds = ['Neg'] * 1000 + ['Switch', 'Neg']
  nodes = [
      node_def_pb2.NodeDef(name=f'n{i}', op=kind)
      for i, kind in enumerate(kinds)
  ]
  edges = [(i - 1, 0, i) for i in range(1, len(nodes))]
  edges.append((999, 0, 1000))
  found = frames.analyse(nodes, edges, np.ones(len(nodes)), lambda _: ())
  assert found.executions.tolist() == [1.] * len(nodes)
