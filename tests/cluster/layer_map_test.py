import importlib

import hypothesis
from hypothesis import strategies
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import layer_map

# As Keras 3 names layers dense, dense_1 and dense_2, in the forward pass and
# in the gradient; and what it adds.
_KERAS_3 = ('StatefulPartitionedCall/net_1/encoder_1/dense_1/MatMul',
            'StatefulPartitionedCall/net_1/encoder_1/dense_1_2/MatMul',
            'StatefulPartitionedCall/net_1/decoder_1/dense_2_1/MatMul',
            'StatefulPartitionedCall/gradient_tape/net_1/encoder_1/dense_1_2/'
            'MatMul/MatMul_1', 'StatefulPartitionedCall/adam/Sub_3', 'iterator')
_KERAS_2 = ('net/encoder/dense/MatMul', 'net/encoder/dense_1/MatMul',
            'net/decoder/dense_2/MatMul',
            'gradient_tape/net/encoder/dense_1/MatMul/MatMul_1', 'Adam/sub_3',
            'iterator')


def _match(names, *patterns):
  return layer_map.match(patterns, names).patterns.tolist()


@pytest.mark.parametrize('names', [_KERAS_3, _KERAS_2])
@pytest.mark.parametrize('patterns, expected', [
    (('encoder',), [0, 0, -1, 0, -1, -1]),
    (('encoder/*', 'decoder'), [0, 0, 1, 0, -1, -1]),
    (('dense',), [0, -1, -1, -1, -1, -1]),
    (('dense_1',), [-1, 0, -1, 0, -1, -1]),
    (('dense_2',), [-1, -1, 0, -1, -1, -1]),
    (('dense', 'dense_1', 'dense_2'), [0, 1, 2, 1, -1, -1]),
    (('encoder', 'encoder/dense_1'), [0, 1, -1, 1, -1, -1]),
    (('net', 'decoder'), [0, 0, 1, 0, -1, -1]),
    (('', 'decoder'), [0, 0, 1, 0, 0, 0]),
    (('decoder', '*'), [1, 1, 0, 1, 1, 1]),
    (('net/*/dense',), [0, -1, -1, -1, -1, -1]),
    (('*coder',), [0, 0, 0, 0, -1, -1]),
    (('[ab]*', 'enc*'), [1, 1, -1, 1, -1, -1]),
    (('/net/encoder/',), [0, 0, -1, 0, -1, -1]),
    (('encoder/dense_2', 'decoder/dense'), [-1] * 6),
])
def test_patterns(names, patterns, expected):
  if patterns[0] == '[ab]*':
    names = names[:4] + ('x/y', 'iterator')
  assert _match(names, *patterns) == expected


@pytest.mark.parametrize('pattern', ['dense*', 'dens?', '*', '[d]ense*'])
def test_a_name_comes_before_a_wildcard_that_matches_the_same(pattern):
  """'dense*' counted as longer; at 'dens?' the order of a set decided."""
  for names in (['dense', pattern], [pattern, 'dense']):
    found = layer_map.match(names, ['net/dense/MatMul', 'net/dense_a/MatMul'])
    assert names[found.patterns[0]] == 'dense'
  assert layer_map.match(['de*', 'den*'], ['dense/MatMul']).patterns[0] == 1


def test_the_pattern_whose_first_name_is_exact_comes_first():
  """The order of a set decided, which differs from process to process."""
  for names in (['a1/b*', 'a*/b1'], ['a*/b1', 'a1/b*']):
    found = layer_map.match(names, ['a1/b1/op', 'a1/b1/c/op'])
    assert {names[i] for i in found.patterns} == {'a1/b*'}


def test_longer_then_inner_then_more_letters():
  names = ('a/b/c/op',)
  assert _match(names, 'c', 'a/b') == [1]
  assert _match(names, 'a', 'c', 'b') == [1]
  assert _match(names, 'c*', 'c') == [1]
  assert _match(names, 'a/b', 'b/c') == [1]


def test_a_layer_that_is_called_twice():
  assert _match(('f_1/op', 'f_3/op', 'g_1/op'), 'f') == [0, 0, -1]


def test_an_op_itself_has_a_name():
  assert _match(('a/MatMul', 'a/MatMul_1', 'a/Relu'), 'a/Relu') == [-1, -1, 0]


def test_only_the_default_is_called_so():
  found = layer_map.match(('', 'a'), ('a/op', 'b/op'))
  assert found.only_default.tolist() == [False, True]


def test_a_pattern_for_nothing_is_told_with_what_is_near():
  found = layer_map.match(('encodr', 'decoder', '', 'zzz'), _KERAS_3)
  assert found.idle == ('"encodr" (did you mean "encoder"?)', '"zzz"')
  assert found.is_near
  assert not layer_map.match(('decoder', 'zzz'), _KERAS_3).is_near


def test_the_number_of_a_part_belongs_to_its_name():
  names = [f'net_1/words_1/embeddings_part_{i}/Gather' for i in range(3)]
  found = layer_map.match(['words/embedding_part_2'], names)
  assert found.idle == (
      '"words/embedding_part_2" (did you mean "embeddings_part_2"?)',)


@pytest.mark.parametrize('name, bare', [
    ('StatefulPartitionedCall/net_1/dense_1_2/MatMul', 'net/dense_1/MatMul'),
    ('Func/StatefulPartitionedCall_2/input/_5', 'input/_5'),
    ('gradient_tape/net_1/op_12', 'net/op'),
])
def test_bare_names(name, bare):
  assert layer_map.bare_name(name) == bare


@pytest.mark.parametrize('name, plain', [
    ('StatefulPartitionedCall/net_1_2/dense_1_2/MatMul_3', 'net/dense/MatMul'),
    ('input/_5', 'input/_5'),
    ('net_a_1/op', 'net_a/op'),
])
def test_plain_names(name, plain):
  assert layer_map.plain_name(name) == plain


def test_checked_pairs_are_sorted():
  pairs = layer_map.checked({'b': 'gpu:1', 'a/*': '/device:CPU:0'})
  assert pairs == (('a/*', '/device:CPU:0'), ('b', 'gpu:1'))


@pytest.mark.parametrize(
    'entries, message',
    [({}, '0 entries'), ({1: 'GPU:0'}, '1 is no name'),
     ({'a' * 1001: 'GPU:0'}, 'is no name'),
     ({'a': 1}, 'The device of "a" is 1'),
     ({'a': 'GPU'}, '"GPU" is not a device name'),
     (dict.fromkeys(map(str, range(10_001)), 'GPU:0'), '10001 entries')])
def test_wrong_maps(entries, message):
  with pytest.raises(errors.GdpError) as caught:
    layer_map.checked(entries)
  assert message in str(caught.value)


_PATHS = strategies.lists(
    strategies.lists(strategies.sampled_from('a b c'.split()), min_size=1,
                     max_size=4).map('/'.join), min_size=1, max_size=6)


@hypothesis.given(names=_PATHS.map(lambda paths: [f'{p}/op' for p in paths]),
                  patterns=_PATHS)
def test_without_numbers_it_is_a_run_of_names(names, patterns):
  """What holds is a pattern that is there, and none there is longer."""
  for name, found in zip(names, _match(names, *patterns)):
    there = [
        i for i, pattern in enumerate(patterns) if f'/{pattern}/' in f'/{name}'
    ]
    assert (found in there) if there else found == -1
    if there:
      assert patterns[found].count('/') == max(
          patterns[i].count('/') for i in there)


def test_a_name_of_a_layer_that_a_longer_one_overrules_is_told():
  """Once: no op is in "table" (did you mean "table"?)."""
  found = layer_map.match(['table', 'net/table'], ['net_1/table/Gather'])
  assert not found.idle
  assert found.overruled == ('"table" is overruled by "net/table"',)


def test_messages_take_no_pass_over_the_graph(monkeypatch):
  """Each pattern without ops took one."""
  made = []

  class _Counted(layer_map._Matcher):

    def __init__(self, *args):
      super().__init__(*args)
      made.append(self)

  monkeypatch.setattr(layer_map, '_Matcher', _Counted)
  found = layer_map.match(['a', 'b', 'c', 'x', 'x/a'], ['x/a/op', 'a/op'])
  assert found.patterns.tolist() == [4, 0]
  assert found.idle == ('"b"', '"c"') and not found.is_near
  assert found.overruled == ('"x" is overruled by "x/a"',)
  assert len(made) == 1


def test_nobody_is_asked_whether_what_was_written_was_meant():
  found = layer_map.match(['dense_1/a', 'net/b'], ['net/dense_1/MatMul'])
  assert found.idle == ('"dense_1/a"', '"net/b"')


def test_wildcards_are_for_layers_and_not_for_what_is_inside_of_them():
  """Once 'a*' took the op "add" of the layer that 'b*' is for."""
  names = [
      'net/b_enc/add', 'net/b_enc/rnn/while/gradients/add_2_grad/Shape',
      'net/a_enc/rnn/while/body/_64/input/_1', 'net/a_enc/StridedSlice/begin',
      'net/a_enc/b_enc/MatMul', 'add'
  ]
  assert _match(names, 'a*', 'b*') == [1, 1, 0, 0, 1, -1]
  # If nothing else matches an op, its name counts, and a whole name always.
  assert _match(names, '*_grad') == [-1, 0, -1, -1, -1, -1]
  assert _match(names, 'add', 'b*') == [0, 1, 1, -1, 1, 0]


def test_a_layer_with_the_name_of_an_op():
  """Once 'add' moved the ops of normalizations, and not the layer."""
  names = [
      'm_1/add_1/Add', 'm_1/norm_1/add', 'm_1/norm_1/add/y', 'm_1/add_1_2/Add',
      'gradient_tape/m_1/norm_1/add_1/Sum', 'm_1/add_3/add'
  ]
  assert _match(names, 'add', 'add_1') == [0, -1, -1, 1, -1, 0]
  assert _match(names, 'm/add', 'ad*') == [0, -1, -1, 1, -1, 0]
  # Without such a layer, the name is the op's.
  assert _match(names[1:3], 'add') == [0, 0]


@pytest.mark.parametrize('pattern, found', [
    ('net', [0, -1, 0]),
    ('net_1', [-1, 0, -1]),
    ('net_?', [-1, 0, -1]),
    ('net_2', [-1, -1, 0]),
])
def test_a_known_name_of_a_layer_decides(pattern, found):
  """The scope 'net_1' is the second call of `net`, not the model `net_1`."""
  layers = {('net_1',): 'net', ('net_1_1',): 'net_1', ('net_2',): 'net'}
  names = ['net_1/a', 'net_1_1/a', 'ConstantFolding/net_2/a']
  assert layer_map.match([pattern], names, layers).patterns.tolist() == found


def test_the_scope_of_an_op_is_not_the_layer_of_that_name():
  """In Keras 3, {'Cast': 'GPU:1'} once placed all layers that cast."""
  importlib.import_module('tensorflow')  # TensorFlow knows the types of ops.
  layers = {('m_1', 'Cast_1'): 'Cast', ('m_1', 'x_1'): 'x'}
  names = ['m_1/Cast_1/Cast/Cast', 'm_1/x_1/Cast/Cast', 'm_1/x_1/MatMul']
  found = layer_map.match(['Cast'], names, layers).patterns.tolist()
  assert found == [0, -1, -1]
