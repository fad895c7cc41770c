from gdp_grappler.placers import stopwatch


def test_adds_up_what_is_done_and_what_is_going_on():
  now = [0.]
  watch = stopwatch.Stopwatch(lambda: now[0])
  with watch.running():
    now[0] = 2.
    assert watch.seconds == 2
  now[0] = 5.
  assert watch.seconds == 2
  with watch.running():
    now[0] = 6.
  assert watch.seconds == 3
