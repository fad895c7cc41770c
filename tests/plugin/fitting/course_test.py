import dataclasses

import pytest

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
  """Once it left out that TensorFlow builds the step a second time."""
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
