import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import shortage
from helpers import clusters
from helpers import graphs


def _cluster(*sizes):
  cluster = clusters.make_cluster(len(sizes) - 1)
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(device, memory_bytes=int(size))
          for device, size in zip(cluster.devices, sizes)))


def _graph(param_bytes, groups=None, on_gpus=True):
  graph = graphs.chain(len(param_bytes), 1)
  allowed = np.ones((len(param_bytes), 2), bool)
  allowed[:, 0] = not on_gpus
  return graph.replace(
      param_bytes=np.array(param_bytes, np.int64), allowed_types=allowed,
      groups=np.array(groups or range(len(param_bytes)), np.int32))


def test_what_fits_is_not_refused():
  assert not shortage.why_none_fits(_graph([5, 5]), _cluster(1, 5, 5))
  # The host has room for what may be there.
  assert not shortage.why_none_fits(_graph([9, 9], on_gpus=False),
                                    _cluster(99, 5, 5))
  assert not shortage.why_none_fits(_graph([0, 0]), _cluster(1, 1))


def test_one_thing_that_no_memory_holds():
  said = shortage.why_none_fits(_graph([4 * 10**9, 8 * 10**9, 1], [0, 0, 1]),
                                _cluster(1, 11 * 10**9, 5 * 10**9))
  assert '4.0 GB, with its slots 12.0 GB must be in one memory' in said
  assert 'the largest that it may be in has 11.0 GB' in said
  assert 'tensor is never cut, except tables' in said
  assert 'smaller batch' in said and 'fewer slots' in said


def test_all_together_are_too_large():
  said = shortage.why_none_fits(_graph([6 * 10**6] * 5),
                                _cluster(10**9, 10**7, 10**7))
  assert 'hold 30 MB for good, and GPU:0 + GPU:1' in said
  assert 'have 20 MB' in said and said.count('6 MB') == 3


def test_rooms_are_those_of_cards_or_of_all_without_cards():
  assert shortage.rooms_bytes(_cluster(9, 5, 4)) == (5, 4)
  assert shortage.rooms_bytes(_cluster(9)) == (9,)


@pytest.mark.parametrize('seed', range(30))
def test_what_fits_is_not_refused_and_what_is_too_much_is(seed):
  rng = np.random.default_rng(seed)
  sizes = rng.integers(1, 9, 5)
  room = rng.integers(4, 20, 2)
  fits = any((np.bincount(places, sizes, 2) <= room).all()
             for places in _all_places(5))
  said = shortage.why_none_fits(_graph(sizes), _cluster(1, *room))
  assert not (fits and said)
  if sizes.sum() > room.sum() or sizes.max() > room.max():
    assert said


def _all_places(count):
  return (np.array([(code >> i) & 1 for i in range(count)])
          for code in range(2**count))


def test_the_best_placement_found_does_not_fit():
  said = _of_placement(_graph([3 * 10**9, 10**9]),
                       _cluster(1, 4 * 10**9, 4 * 10**9), [1, 2],
                       [0, 5 * 10**9, 10**9])
  assert 'GPU:0 needs 5.0 GB of 4.0 GB' in said and 'GPU:1 needs' not in said
  assert 'hold 3.0 GB for good; the largest are' in said
  assert 'optimizer with fewer slots' in said


def _of_placement(graph, cluster, devices, peaks, temporary=None):
  if temporary is None:
    temporary = np.zeros((graph.num_ops, cluster.num_devices), np.int64)
  return shortage.of_placement(graph, cluster, np.array(devices), peaks,
                               temporary)


def test_where_tensors_are_too_large_no_small_variable_is_blamed():
  graph = _graph([2000, 0, 0]).replace(
      tensor_ops=np.array([0, 1, 2]),
      tensor_bytes=np.array([7, 8 * 10**6, 9 * 10**6], np.int64),
      op_types=('VarHandleOp', 'Conv2D', 'Relu'))
  said = _of_placement(graph, _cluster(1, 10**7, 10**7), [1, 1, 1],
                       [0, 2 * 10**7, 0])
  assert 'Variables' not in said and 'slots' not in said
  assert 'never cut' not in said and 'a smaller batch' in said
  largest = said[said.index('The largest tensors'):]
  assert largest.index('9 MB') < largest.index('8 MB')


def _frozen():
  """Three constants in groups of their own, and a small variable."""
  return _graph([0, 0, 0, 7
                ]).replace(op_types=('Const', 'Const', 'Const', 'VarHandleOp'),
                           tensor_ops=np.arange(4),
                           tensor_bytes=np.array([4, 5, 6, 0]) * 10**6)


def test_constants_that_are_too_large_are_refused():
  """A graph whose constants fit nowhere was searched to the end."""
  graph = _frozen()
  said = shortage.why_none_fits(graph, _cluster(1, 7 * 10**6, 7 * 10**6))
  assert 'its constants hold 15 MB for good, and GPU:0 + GPU:1' in said
  assert f'The largest are "{graph.names[2]}", 6 MB; ' in said
  assert 'constants of fewer bytes' in said and 'slots' not in said
  assert not shortage.why_none_fits(graph, _cluster(1, 9 * 10**6, 9 * 10**6))


def test_only_what_is_on_a_full_memory_is_named():
  """A larger variable on another device was named as a cause."""
  graph = _graph([9 * 10**6, 4 * 10**6])
  said = _of_placement(graph, _cluster(1, 10**7, 3 * 10**6), [1, 2],
                       [0, 9 * 10**6, 4 * 10**6])
  assert f'the largest are "{graph.names[1]}", 4 MB' in said
  assert graph.names[0] not in said


def test_constants_are_no_tensors_of_a_step():
  """The message named frozen weights as the largest tensors of a step."""
  graph = _frozen()
  said = _of_placement(graph, _cluster(1, 10**7, 10**7), [1] * 4,
                       [0, 15 * 10**6, 0])
  assert 'Constants there hold 15 MB for good; the largest are' in said
  assert 'of a step' not in said and 'slots' not in said
  both = graph.replace(param_bytes=np.array([0, 0, 0, 3 * 10**6]))
  said = _of_placement(both, _cluster(1, 10**7, 10**7), [1] * 4,
                       [0, 18 * 10**6, 0])
  assert 'Variables and constants there hold 18 MB' in said
  assert 'fewer slots' in said


def test_a_variable_gives_a_group_with_constants_its_name():
  """The bytes of a constant in a group would have been those of slots."""
  graph = _frozen().replace(groups=np.array([0, 0, 1, 0]),
                            variables=('', '', '', 'dense/kernel'))
  said = shortage.why_none_fits(graph, _cluster(1, 8 * 10**6, 8 * 10**6))
  assert 'dense/kernel' in said and 'with its group 9 MB must be in one' in said


def test_an_update_is_named_by_its_variable():
  """An error named "StatefulPartitionedCall/adam/Sub_2" alone."""
  call = 'StatefulPartitionedCall'
  graph = graphs.make_graph([(0, 1, 9 * 10**6), (1, 2, 8 * 10**6), (2, 3, 8),
                             (1, 4, 8)], names=[
                                 f'{call}/net/words/Gather',
                                 f'{call}/adam/Sub_2', f'{call}/assign',
                                 'arg_0', 'arg_1'
                             ], op_types=['Gather', 'Sub', 'Add', 'A', 'A'],
                            param_bytes=[0, 0, 0, 7, 0])
  graph = graph.replace(variables=('', '', '', 'words/embeddings', ''))
  cluster = _cluster(1, 10**7, 10**7)
  said = _of_placement(graph, cluster, [1] * 5, [0, 2 * 10**7, 0])
  assert ('those of "net/words/Gather" for "words/embeddings", 9 MB; '
          '"adam/Sub_2" for "words/embeddings", 8 MB') in said
  # What several variables read is no update.
  several = graph.replace(param_bytes=np.array([0, 0, 0, 7, 7]))
  said = _of_placement(several, cluster, [1] * 5, [0, 2 * 10**7, 0])
  assert 'those of "net/words/Gather", 9 MB; "adam/Sub_2", 8 MB' in said


def test_temporary_memory_that_does_not_fit_is_named():
  graph = _graph([0, 0, 0]).replace(op_types=('Const', 'Conv2D', 'Relu'))
  temporary = np.zeros((3, 3), np.int64)
  temporary[1, 2] = 6 * 10**6
  cluster, peaks = _cluster(1, 10**7, 10**7), [0, 0, 2 * 10**7]
  said = _of_placement(graph, cluster, [1, 2, 2], peaks, temporary)
  assert (f'"{graph.names[1]}" (Conv2D) alone may take 6 MB of temporary '
          'memory') in said
  # On a device that is not exceeded, or as a small part of what is needed.
  assert 'temporary' not in _of_placement(graph, cluster, [1, 1, 2], peaks,
                                          temporary)
  assert 'temporary' not in _of_placement(graph, cluster, [1, 2, 2], peaks,
                                          temporary // 10)


def test_parts_of_one_table_count_as_one():
  graph = _graph([9, 7, 8,
                  3]).replace(variables=('words/table_part_0',
                                         'words/table_part_1',
                                         'words/table_part_2', 'head/kernel'))
  said = shortage.why_none_fits(graph, _cluster(10**9, 13, 13))
  assert '"words/table" in 3 parts, the largest of 9 B; "head/kernel' in said
  assert '_part_' not in said


@pytest.mark.parametrize('count, said', [
    (16.34e9, '16.3 GB'),
    (999_600_000, '1.0 GB'),
    (999_400_000, '999 MB'),
    (12e6, '12 MB'),
    (999_500, '1 MB'),
    (147_456, '147 kB'),
    (999.6, '1 kB'),
    (12, '12 B'),
])
def test_a_size_has_a_unit_that_suits_it(count, said):
  """Sizes just below a unit were written as "1e+03 MB"."""
  assert shortage.size(count) == said


def test_a_memory_that_is_nearly_full_is_told():
  cluster = _cluster(100, 1000, 1000)
  assert not shortage.nearly_full(cluster, [0, 900, 0])
  assert 'GPU:0 ' in shortage.nearly_full(cluster, [0, 901, 0])
  assert not shortage.nearly_full(cluster, [0, 1001, 0])


def test_memories_that_are_exceeded_are_named_with_what_would_help():
  cluster = _cluster(100, 1000, 1000)
  graph = _graph([1, 1], on_gpus=False)
  assert shortage.list_exceeded(cluster,
                                [0, 1001, 1000]) == ('GPU:0 needs 1 kB of 1 kB')
  said = shortage.if_used_anyway(graph, cluster, [300, 2500, 0], less=True)
  assert said == (
      'it exceeds a memory, though less than as it was: CPU:0 needs '
      '300 B of 100 B, GPU:0 needs 2.5 kB of 1 kB')
  assert 'less' not in shortage.if_used_anyway(graph, cluster, [300, 0, 0],
                                               False)
