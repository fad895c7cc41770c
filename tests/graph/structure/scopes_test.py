import pytest

from gdp_grappler.graph.structure import scopes
from helpers import graphs


def _read(*names):
  return scopes.read(graphs.make_graph(num_ops=len(names), names=names))


def _members(*names):
  """By op: the members of its entries, the outermost first."""
  found = _read(*names)
  return [found.members[found.ops == op].tolist() for op in range(len(names))]


@pytest.mark.parametrize('names', [
    ('layer0/mul', 'layer1/mul', 'layer10/mul', 'layer2/mul'),
    ('net/layer_0/mul', 'net/layer_1/mul', 'net/layer_10/mul',
     'net/layer_2/mul'),
    ('block/mul', 'block_1/mul', 'block_10/mul', 'block_2/mul'),
    ('net.layers.0.mul', 'net.layers.1.mul', 'net.layers.10.mul',
     'net.layers.2.mul'),
])
def test_members_are_in_the_order_of_their_numbers(names):
  assert _members(*names) == [[0], [1], [3], [2]]


def test_numbers_within_numbers():
  assert _members('a0/b0/x', 'a0/b1/x', 'a1/b0/x') == [[0, 0], [0, 1], [1, 0]]


def test_a_scope_that_is_opened_again():
  found = _read('layer1/x', 'layer1_1/x', 'layer2/x', 'layer2_1/x')
  assert found.members.tolist() == [0, 0, 0, 1, 1, 0, 1, 1]
  assert found.again.tolist() == [False, True] * 4


def test_what_is_there_once_is_not_numbered():
  assert _members('conv3/x', 'conv3/y', 'plain/x', 'z') == [[]] * 4


def test_the_name_of_the_op_itself_does_not_count():
  assert _members('op0', 'op1', 'a/mul_1', 'a/mul_2') == [[]] * 4


@pytest.mark.parametrize('gradient', [
    'gradients/layer1/mul_grad/Reshape', 'gradients_2/layer1/mul_grad/a/b',
    'gradient_tape/layer1/mul/Mul_1', 'gradient_tape/layer1/mul/Mul'
])
def test_what_a_gradient_is_of(gradient):
  found = _read('layer0/mul', 'layer1/mul', gradient)
  assert found.backward.tolist() == [False, False, True]
  assert found.forward_ops.tolist() == [-1, -1, 1]
  assert found.members[found.ops == 2].tolist() == [1]


def test_gradients_inside_a_call():
  found = _read('Call/net/mul', 'Call/gradient_tape/net/mul/Mul')
  assert found.forward_ops.tolist() == [-1, 0]


@pytest.mark.parametrize('name', [
    'gradients/AddN_2', 'gradients', 'gradients/', 'gradient_tape/x', '/', '//',
    'a//b', '9' * 400 + '/x', 'layer' + '7' * 30 + '/x', 'é٣/x', '_grad/x',
    'gradients/_grad/x'
])
def test_names_that_tell_nothing(name):
  found = _read(name, 'other/y')
  assert found.forward_ops.tolist() == [-1, -1]
  assert not len(found.ops)


def test_numbers_of_families_and_siblings_are_by_first_use():
  found = _read('a1/b2/x', 'a2/b3/x', 'a1_1/x')
  # a, a again, b; in the outermost scope, a1, a2.
  assert found.families.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
  assert found.members.tolist() == [0, 0, 0, 1, 0, 1, 0, 1]
  assert found.siblings.tolist() == [0, 1, 1, 0, 3, 3, 0, 1]
  assert found.ops.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]


def test_what_is_too_deep_is_a_detail():
  around = '/'.join('abcdefg')
  assert _members(f'{around}/h0/x', f'{around}/h1/x') == [[0], [1]]
  assert _members(f'{around}/g/h0/x', f'{around}/g/h1/x') == [[]] * 2


def test_slashes_and_dots_part_alike():
  found = _read('a.b0/x', 'a/b1/x', 'a.b0.y')
  assert found.members.tolist() == [0, 1, 0]
  assert found.siblings.tolist() == [found.siblings[0]] * 3


def test_an_empty_graph():
  assert not len(_read().ops)
