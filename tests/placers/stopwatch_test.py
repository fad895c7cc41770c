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


def test_a_deadline_is_put_off_by_what_is_done_once(monkeypatch):
  now = [5.]
  loading = stopwatch.Stopwatch(lambda: now[0])
  monkeypatch.setattr(stopwatch, 'LOADING', loading)
  with loading.running():
    now[0] = 10.  # Before it began: that is none of its business.
  deadline = stopwatch.Deadline(4, lambda: now[0])
  assert deadline.left_s == 4
  now[0] = 11.
  with loading.running():
    now[0] = 111.
    assert deadline.left_s == 3
  now[0] = 113.
  assert deadline.left_s == 1
  now[0] = 200.
  assert deadline.left_s == 0
