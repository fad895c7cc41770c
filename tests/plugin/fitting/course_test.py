import dataclasses

import pytest
import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import course as course_lib
from gdp_grappler.plugin.fitting import plan as plan_lib
from gdp_grappler.plugin.fitting import ways

Way = ways.FitWay


def _plan(device='GPU:1'):
  outcome = outcome_lib.Outcome((device,), 'step: 1 op placed', (), 4., 1.)
  return plan_lib.FitPlan({'a': device}, (), outcome)


def _note(course, seconds):
  course.timing._seconds = [seconds] * 5
  return course.note(2)


def test_steps_of_a_call_share_its_time():
  course = course_lib.Course(_plan())
  course.enter(course.compare(course.plan, True, settings_lib.Settings()))
  assert course.way is Way.XLA
  course.enter(_note(course, 6.))
  assert course.way is Way.PLACED and not course.is_decided
  # 4 s are predicted without XLA, and hence 1 s times 3 / 4 with clusters.
  course.enter(_note(course, 2.))
  assert course.way is Way.CLUSTERS
  assert course.timing._to_skip > course_lib.guard.StepTiming()._to_skip
  assert _note(course, 1.) is Way.CLUSTERS and course.is_decided
  report = course.report(3)
  assert (report.before_s, report.placed_s) == (3., .5)
  assert report.moved_variables == 3 and report.placed_ops == {'GPU:1': 1}
  assert report.way == 'placed, with XLA inside each device'


@pytest.mark.parametrize('device, flags, are_tried', [
    ('CPU:1', '', False),
    ('CPU:1', '--tf_xla_cpu_global_jit', True),
    ('GPU:1', '', True),
])
def test_xla_makes_clusters_on_cpus_only_if_it_is_told(monkeypatch, device,
                                                       flags, are_tried):
  monkeypatch.setenv('TF_XLA_FLAGS', flags)
  course = course_lib.Course()
  course.compare(_plan(device), True, settings_lib.Settings())
  assert (Way.CLUSTERS in course.comparison._candidates) == are_tried


def test_what_the_user_decided_is_tried_whatever_is_predicted():
  course = course_lib.Course()
  settings = settings_lib.Settings(keep_best=False, guard=True)
  course.compare(_plan(), True, settings)
  course.comparison.note(Way.XLA, ways.Figures(.5, 5))
  assert course.comparison.next is Way.PLACED


def test_what_cannot_be_placed_stays():
  course = course_lib.Course(_plan())
  course.give_up(Way.XLA)
  assert course.stays and course.report(0).placed_ops == {}


@pytest.mark.parametrize('changes, is_certain, said', [
    (False, False, 'no gain; stays with XLA, as Keras chose'),
    (True, True, ''),
    (True, False, 'it draws random numbers from streams'),
])
def test_a_plan_that_is_not_compared_is_explained(changes, is_certain, said):
  nothing = plan_lib.FitPlan({}, (), outcome_lib.Outcome(None, 'step: no gain'))
  line = course_lib.of_kept_xla(_plan() if changes else nothing, 'fit of "net"',
                                is_certain)
  assert said in line and bool(line) == bool(said)


@pytest.mark.parametrize('moves, said', [
    ((), '; 1000 ms spent on building the placed step'),
    (((None, 'GPU:1'),),
     '; 3500 ms spent on moving variables and building the placed step'),
])
def test_line_says_all_that_the_user_waited_for(moves, said):
  """Once the line left out the time to build the placed step."""
  course = course_lib.Course(dataclasses.replace(_plan(), moves=moves))
  course.enter(course.compare(course.plan, False, settings_lib.Settings()))
  course.enter(_note(course, 6.))
  course.moved_in(2.5)
  assert course.timing._to_skip == 2
  course.timing._skipped_s = [3., 2.]
  _note(course, 2.)
  assert course.describe(2).endswith(f'stays placed{said}')


def test_line_says_nothing_of_what_took_no_time():
  course = course_lib.Course(_plan())
  course.enter(course.compare(course.plan, False, settings_lib.Settings()))
  course.enter(_note(course, 6.))
  _note(course, 2.)
  assert course.describe(2).endswith('stays placed')


@pytest.mark.parametrize('outcome, placed_ops, predicted_s', [
    (outcome_lib.Outcome(('CPU:2',), 'step: 1 op placed',
                         (), 4., 3.), {'CPU:2': 1}, 3.),
    (outcome_lib.Outcome(None, 'step: no gain'), {}, None),
])
def test_a_step_that_cannot_follow_reports_its_own_devices(
    outcome, placed_ops, predicted_s):
  """Once the callback printed the plan although `relocate` had changed it."""
  graph_def = tf.compat.v1.GraphDef()
  graph_def.node.add(name='a')
  source = source_graph.SourceGraph('step', graph_def)
  course = course_lib.Course(_plan())
  course.enter(Way.PLACED)
  course.note_placed(source, outcome, 'step')
  report = course.report(0)
  assert (report.placed_ops, report.predicted_s) == (placed_ops, predicted_s)
  course.note_placed(source, dataclasses.replace(outcome, message=''), 'step')
  report = course.report(0)
  assert (report.placed_ops, report.predicted_s) == ({'GPU:1': 1}, 1.)


def test_a_step_of_another_batch_does_not_hide_a_step_that_cannot_follow():
  """Once the callback printed the plan after a smaller last batch."""
  source = source_graph.SourceGraph('step', tf.compat.v1.GraphDef())
  outcome = outcome_lib.Outcome(('CPU:2',), 'step: 1 op placed')
  course = course_lib.Course(_plan())
  course.note_placed(source, outcome, 'step')
  course.note_placed(source, dataclasses.replace(outcome, message=''), 'last')
  assert course.instead is not None


def test_smaller_last_batches_are_not_timed():
  """Once each smaller batch began the timing anew, so it never ended."""
  course = course_lib.Course(_plan())
  course.compare(course.plan, False, settings_lib.Settings())
  sizes = [64] * 9 + [10] + [None] + [64] * 9 + [10]
  timed = [course.times(size) for size in sizes]
  assert timed == [size != 10 for size in sizes]
  assert course.comparison is not None


@pytest.mark.parametrize('sizes, begins_anew', [
    ([10] * 8, True),
    ([10] * 7 + [64] + [10] * 7, False),
    ([10, 20] * 8, False),
])
def test_a_size_that_stays_is_the_one_to_be_timed(sizes, begins_anew):
  course = course_lib.Course(_plan())
  course.compare(course.plan, False, settings_lib.Settings())
  for size in [64, *sizes]:
    is_timed = course.times(size)
  assert is_timed == begins_anew
  assert (course.comparison is None) == begins_anew
  assert course.batch_size == (10 if begins_anew else 64)


@pytest.mark.parametrize('way, has_xla, said', [
    (Way.XLA, True, 'the first steps run with XLA'),
    (Way.AS_IT_WAS, True, 'the next steps run without XLA'),
    (Way.AS_IT_WAS, False, 'the first steps run as they were'),
])
def test_the_line_names_the_way_in_which_the_next_steps_run(way, has_xla, said):
  """Once the line named XLA while steps without XLA were timed."""
  line = course_lib.of_comparison(_plan(), way, has_xla)
  assert line == f'step: 1 op placed; {said}, to compare'
