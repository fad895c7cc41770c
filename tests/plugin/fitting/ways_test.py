import itertools

import pytest

from gdp_grappler.plugin.fitting import ways

Way = ways.FitWay
_ONCE = {Way.AS_IT_WAS: .0114, Way.PLACED: .0047}


def _compared(seconds, predicted=None, compile_s=1., budget_s=30.,
              baseline=Way.XLA):
  """Returns a comparison, and the ways that it timed, in order.

  Args:
    seconds: Measured seconds of a step, by way.
    predicted: Predicted seconds of a step, by way.
    compile_s: Seconds of a compilation by XLA.
    budget_s: Limit on these seconds.
    baseline: The way in which Keras would run the step.
  """
  comparison = ways.WayComparison(baseline, predicted or {}, budget_s)
  timed = []
  while comparison.next is not None:
    timed.append(comparison.next)
    comparison.note(timed[-1], ways.Figures(seconds[timed[-1]], 5, compile_s))
  return comparison, timed


def test_without_xla_the_plan_is_tried():
  """The times are those of a CNN of two towers on an H100 cut in two."""
  comparison, timed = _compared({Way.AS_IT_WAS: .0242, Way.PLACED: .0174},
                                _ONCE, baseline=Way.AS_IT_WAS)
  assert timed == [Way.AS_IT_WAS, Way.PLACED]
  assert comparison.best is Way.PLACED
  assert comparison.describe() == (
      '24.2 ms as it was, 17.4 ms placed (measured, medians of 5 and 5 calls): '
      'stays placed')


def test_without_xla_what_is_slower_goes_back():
  """The times are those of a perceptron on the same card."""
  comparison, _ = _compared({Way.AS_IT_WAS: .0102, Way.PLACED: .0116},
                            baseline=Way.AS_IT_WAS)
  assert comparison.best is Way.AS_IT_WAS
  assert comparison.describe(4) == (
      '40.8 ms as it was, 46.4 ms placed (measured, medians of 5 and 5 calls '
      'of 4 steps): goes back to what it was')
  assert comparison.in_short() == (
      'left as it was, which was measured to be no slower than placed')


def test_what_is_predicted_to_be_slower_than_xla_is_not_tried():
  comparison, timed = _compared({Way.XLA: .004},
                                {Way.AS_IT_WAS: .0114, Way.PLACED: .0111})
  assert timed == [Way.XLA]
  line = comparison.describe()
  assert line.startswith(
      '4 ms with XLA (measured, medians of 5 calls); XLA took 1 s to compile; '
      'placed: not tried, predicted 11.1 ms; without XLA: not tried, predicted '
      '11.4 ms; placed, with XLA inside each device: not tried, predicted 3.89 '
      'ms: stays with XLA')
  assert ': stays with XLA, as Keras chose. ' in line
  assert comparison.in_short().startswith('stays with XLA')


def test_clusters_are_tried_even_if_only_they_may_win():
  """Placing shortens the step with XLA, 4 ms, by the factor 4.7 / 11.4."""
  comparison, timed = _compared({Way.XLA: .004, Way.CLUSTERS: .002}, _ONCE)
  assert timed == [Way.XLA, Way.CLUSTERS]
  assert comparison.best is Way.CLUSTERS


def test_clusters_are_tried_where_xla_helps():
  """XLA shortens 24.2 ms to 18 ms. The placed step would take 12.9 ms."""
  comparison, timed = _compared(
      {
          Way.XLA: .018, Way.PLACED: .0174, Way.AS_IT_WAS: .0242,
          Way.CLUSTERS: .0132
      }, _ONCE, 21.)
  assert timed == [Way.XLA, Way.PLACED, Way.AS_IT_WAS, Way.CLUSTERS]
  assert comparison.predicted_s(Way.CLUSTERS) == pytest.approx(.01294, rel=1e-3)
  assert comparison.best is Way.CLUSTERS
  line = comparison.describe()
  for figure in ('18 ms with XLA', '17.4 ms placed', '24.2 ms without XLA',
                 '13.2 ms placed, with XLA inside each device',
                 'medians of 5, 5, 5 and 5 calls',
                 'XLA took 21 s to compile and 21 s for clusters',
                 'XLA rounds differently'):
    assert figure in line
  assert ': stays placed, with XLA inside each device. ' in line


def test_clusters_are_not_tried_where_xla_makes_the_step_slower():
  comparison, timed = _compared(
      {Way.XLA: .03, Way.PLACED: .0174, Way.AS_IT_WAS: .0242})
  assert Way.CLUSTERS not in timed and comparison.best is Way.PLACED
  assert 'not tried, predicted 21.6 ms' in comparison.describe()


def test_clusters_are_not_tried_where_xla_compiles_for_too_long():
  comparison, timed = _compared(
      {Way.XLA: .018, Way.PLACED: .0174, Way.AS_IT_WAS: .0242}, compile_s=62.,
      budget_s=30.)
  assert Way.CLUSTERS not in timed
  assert ('placed, with XLA inside each device: not tried, XLA took 62 s to '
          'compile, and xla_compile_s is 30: stays placed. '
         ) in comparison.describe()


def test_clusters_are_not_tried_where_there_would_be_none():
  comparison = ways.WayComparison(Way.XLA, {}, 30.)
  comparison.without_clusters()
  for seconds in (3., 2., 1.):
    comparison.note(comparison.next, ways.Figures(seconds, 5))
  assert comparison.next is None and comparison.best is Way.AS_IT_WAS
  assert ': stays without XLA. ' in comparison.describe()
  assert 'inside each device' not in comparison.describe()


@pytest.mark.parametrize('baseline', [Way.XLA, Way.AS_IT_WAS])
def test_the_baseline_stays_where_nothing_is_faster(baseline):
  comparison, _ = _compared(dict.fromkeys(Way, 1.), baseline=baseline)
  assert comparison.best is baseline


def test_nothing_hopeless_is_tried_and_the_fastest_stays():
  """The test tries all orders of four times, with correct predictions."""
  for times in itertools.permutations((1., 2., 3., 4.)):
    seconds = dict(zip(Way, times))
    comparison, timed = _compared(seconds, seconds)
    assert timed[0] is Way.XLA
    assert comparison.best is min(timed, key=seconds.__getitem__)
    for way in (Way.PLACED, Way.AS_IT_WAS):
      earlier = timed[:timed.index(way)] if way in timed else timed
      fastest_s = min(seconds[other] for other in earlier)
      assert (way in timed) == (seconds[way] < fastest_s)
