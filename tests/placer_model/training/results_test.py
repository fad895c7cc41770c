"""Entries, table and verdict."""

import pathlib

import pytest

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.problems import rewards
from helpers import clusters
from placer_model.training import baselines as baselines_lib
from placer_model.training import results

_MEMORY = placement_lib.Violation('memory', 'GPU:0 needs 1 byte more')
_RUN = placement_lib.Violation('run', 'node x: not within [0, 0).')
_OOM = placement_lib.Violation('run', 'OOM when allocating tensor on GPU:0')


def _entry(name, step_time_s, devices=(1, 1, 1), violations=(), simulated=True,
           ordered_s=None):
  placement = placement_lib.Placement(list(devices), clusters.make_cluster())
  evaluation = evaluator_lib.Evaluation(step_time_s, (5, 70, 0),
                                        tuple(violations), simulated)
  ordered = None if ordered_s is None else evaluator_lib.Evaluation(
      ordered_s, (5, 70, 0), (), simulated)
  return results.entry(
      baselines_lib.Result(name, placement, evaluation, 4, 0.25, 9, ordered))


def _own(step_time_s, devices=(1, 1, 1), found_by='policy', **changes):
  """The entry of the run itself."""
  return _entry('gdp_train', step_time_s, devices, **
                changes) | {'found_by': found_by}


def _verdict(single, own, metis=None, **changes):
  return results.verdict(
      {
          'single_device': single, 'metis': metis or _entry('metis', 9.0),
          'gdp_train': own, **changes
      }, rewards.SIMULATED)


def test_entry():
  assert _entry('gdp_train', 0.5, (0, 1, 1), ordered_s=0.25) == {
      'step_time_s': 0.5, 'ordered_step_time_s': 0.25, 'valid': True,
      'violations': [], 'peak_bytes': {'CPU:0': 5, 'GPU:0': 70, 'GPU:1': 0},
      'ops': {'CPU:0': 1, 'GPU:0': 2, 'GPU:1': 0}, 'simulated': True,
      'evaluations': 4, 'seconds': 0.25, 'seed': 9
  }


def test_entry_of_what_does_not_run():
  entry = _entry('gdp_train', float('inf'), violations=[_MEMORY])
  assert entry['step_time_s'] is None
  assert entry['ordered_step_time_s'] is None
  assert entry['valid'] is False
  assert entry['violations'] == ['GPU:0 needs 1 byte more']


def test_devices_of_one_memory_share_the_figure():
  cluster = clusters.make_cluster(memory=['a', 'b', 'b'])
  placement = placement_lib.Placement([0, 1, 2], cluster)
  evaluation = evaluator_lib.Evaluation(1.0, (5, 70), (), True)
  entry = results.entry(
      baselines_lib.Result('gdp_train', placement, evaluation, 1, 0.0, 0))
  assert entry['peak_bytes'] == {'CPU:0': 5, 'GPU:0': 70, 'GPU:1': 70}


def test_verdict_names_the_single_device():
  said = _verdict(_entry('single_device', 1.0, (0, 2, 2)), _own(1.0, (0, 2, 2)))
  assert said == 'GPU:1 alone is the best found (simulated).'


def test_verdict_on_a_better_placement():
  said = _verdict(_entry('single_device', 0.003), _own(0.002, (0, 1, 2)))
  assert said == ('gdp_train found the best placement: 2.000 ms on CPU:0, '
                  'GPU:0, GPU:1, 1.500x as fast as the best single device '
                  '(simulated).')


@pytest.mark.parametrize('own, said', [
    (_own(.002), 'that of gdp_train, by the policy, takes 2.000 ms.'),
    (_own(.001, found_by='metis'), 'gdp_train keeps it, 1.000 ms.'),
    (_own(.002, found_by='metis'), 'gdp_train has the nearest placement that '
     'splits none of its units, 2.000 ms.'),
    (_own(float('inf'), found_by='', violations=[_RUN]),
     'gdp_train found no placement that runs: node x: not within [0, 0).'),
])
def test_verdict_on_a_run_that_another_placer_beats(own, said):
  verdict = _verdict(_entry('single_device', .003), own,
                     metis=_entry('metis', .001))
  assert verdict == ('The placement of metis is the best found, 1.000 ms '
                     f'(simulated); {said}')


def test_verdict_says_that_the_policy_imitates():
  """An imitated placement was the policy's own without a word on it."""
  own = _own(.002, found_by='search') | {
      'policy_best_step_time_s': .009, 'imitates': True
  }
  assert _verdict(_entry('single_device', .003), own).endswith(
      'takes 9.000 ms (the policy also imitates the best placement).')


@pytest.mark.parametrize('found_by, own_s, said', [
    ('metis', .009, " The policy's own best placement takes 9.000 ms."),
    ('search', .009, " The policy's own best placement takes 9.000 ms."),
    ('metis', None, ' The policy itself found no placement that runs.'),
    ('policy', .002, ''),
    ('greedy', .002, ''),
])
def test_verdict_tells_the_policy_from_what_it_began_with(
    found_by, own_s, said):
  """METIS' placement was reported as GDP's."""
  own = _own(.002, found_by=found_by) | {'policy_best_step_time_s': own_s}
  text = _verdict(_entry('single_device', .003), own)
  assert text.partition('(simulated).')[2] == said


def test_verdict_where_no_single_device_holds_the_graph():
  single = _entry('single_device', 0.001, violations=[_MEMORY])
  said = _verdict(single, _own(0.002))
  assert said == ('gdp_train found the best placement: 2.000 ms (simulated); '
                  'no single device runs it: GPU:0 needs 1 byte more.')


def test_verdict_on_what_does_not_run():
  failed = _own(float('inf'), found_by='', violations=[_RUN])
  assert _verdict(failed, failed, metis=failed) == (
      'No placement that runs was found: node x: not within [0, 0).')


@pytest.mark.parametrize('single, metis, best', [
    (_entry('single_device', 0.003), 0.002, 'The placement of metis'),
    (_entry('single_device', 0.002), 0.003, 'GPU:0 alone'),
    (_entry('single_device', 0.002), 0.002, 'GPU:0 alone'),
    (_entry('single_device', 0.004), 0.003, 'The placement of metis'),
    (_entry('single_device', 0.001,
            violations=[_MEMORY]), 0.002, 'The placement of metis'),
    (_entry('single_device', 0.001, violations=[_RUN
                                               ]), 0.004, 'gdp_train found'),
])
def test_verdict_names_the_best_of_three(single, metis, best):
  """One device was the best found although METIS was faster."""
  said = _verdict(single, _own(0.003), metis=_entry('metis', metis))
  assert said.startswith(best)


def _evaluations(*violations):
  return [
      evaluator_lib.Evaluation(
          float('inf') if v else 1.0, (0, 0, 0), tuple(v), False)
      for v in violations
  ]


def test_steps_that_never_run():
  assert results.never_runs(_evaluations([_RUN], [_RUN, _RUN])) is _RUN


@pytest.mark.parametrize('violations', [(), ([],), ([_RUN], []),
                                        ([_RUN], [_MEMORY]), ([_RUN], [_OOM])])
def test_steps_that_may_run_elsewhere(violations):
  assert results.never_runs(_evaluations(*violations)) is None


@pytest.mark.parametrize('violations, parts, absent', [
    ([_MEMORY, _MEMORY], ['fits into memory', 'with more memory'], 'failure'),
    ([_MEMORY, _RUN], ['first failure: node x: not within [0, 0). Mend'
                      ], 'memory'),
    ([_RUN, _OOM], ['node x', '--reward=simulated'], 'memory'),
    ([_OOM, _MEMORY], ['first failure: OOM when', 'with more memory'], 'Mend')
])
def test_advice_gives_its_reason(violations, parts, absent):
  said = results.why_none_is_valid(violations)
  for part in parts:
    assert part in said
  assert absent not in said


def test_table_tells_simulated_from_measured():
  for kind in rewards.ALL:
    text = results.table(
        'net', '2xP100', {
            'single_device': _entry('single_device', 0.003), 'random': _entry(
                'random', 0.1, violations=[_MEMORY]), 'gdp_train': _own(
                    0.002, ordered_s=0.0015)
        }, kind)
    assert '2.000 ms' in text and '1.500 ms' in text
    assert f'net on 2xP100 ({kind})' in text
    assert '1.500x' in text
    assert 'invalid' in text


@pytest.mark.parametrize('found_by, said', [
    ('metis', 'the best placement of the run, by metis.'),
    ('greedy', 'the best placement of the run, by the policy.'),
    ('draft', 'the best placement of the run, by a simple placer.'),
    ('baseline', 'the best placement of the run, by a placer at the first '
     'start.'),
])
def test_table_says_whose_placement_it_is(found_by, said):
  """The table of one graph did not say where the placement was from."""
  text = results.table(
      'net', '2xP100', {
          'single_device': _entry('single_device', .003), 'gdp_train': _own(
              .002, found_by=found_by)
      }, rewards.SIMULATED)
  assert said in ' '.join(text.split())


@pytest.mark.parametrize(
    'network, said, absent',
    [('one_shot', 'its likeliest placement', "policy's price"),
     ('moves', "Policy's price: the robust price of the best placement",
      'its likeliest placement')])
def test_the_table_of_graphs_explains_the_columns_of_its_network(
    network, said, absent):
  """Runs of the move network had the notes of the other network.

  Their prices were called steps.
  """
  own = _own(.002, found_by='greedy') | {
      'policy_step_time_s': .003, 'policy_price_s': .003
  }
  graph = {
      'name': 'net', 'cluster': {'name': '2xP100'}, 'num_units': 3, 'placers': {
          'single_device': _entry('single_device', .003), 'gdp_train': own
      }
  }
  text, = results.tables(
      {'graphs': [graph, graph], 'reward': 'simulated', 'network': network})
  text = ' '.join(text.split())
  assert said in text and absent not in text
  assert ("policy's" in text.partition('net@')[0]) == (network == 'moves')
  # The table had the origin as results.json names it.
  assert 'the policy' in text and 'greedy' not in text


def _next_steps(**placers):
  record = {'graphs': [{'placers': placers}]}
  return results.next_steps(record, pathlib.Path('my model'), 'net.pb',
                            pathlib.Path('my model/plans/net.json'))


def test_next_steps_can_be_typed():
  text = _next_steps(single_device=_entry('single_device', .003),
                     gdp_train=_own(.002))
  assert text.splitlines()[1:] == [
      "  GDP_PLACEMENT=1 GDP_POLICY='my model/policy' python YOUR_PROGRAM.py",
      '  gdp place GRAPH --cluster=CLUSTER '
      "--policy='my model/policy' --output=plan.json",
      "  gdp report net.pb --plan='my model/plans/net.json' "
      '--output=report.html'
  ]


def test_what_is_better_than_the_policy_comes_first():
  own = _own(.002)
  worse = _entry('single_device', .003)
  text = _next_steps(single_device=worse, metis=_entry('metis', .001),
                     gdp_train=own)
  assert '--placer=metis' in text.splitlines()[1]
  text = _next_steps(single_device=_entry('single_device', .002), gdp_train=own)
  assert 'nothing is gained' in text and '--policy' in text
  full = _entry('single_device', .001, violations=[_MEMORY])
  assert 'nothing is gained' not in _next_steps(single_device=full,
                                                gdp_train=own)
  assert '--policy' in _next_steps(single_device=full, gdp_train=full)
