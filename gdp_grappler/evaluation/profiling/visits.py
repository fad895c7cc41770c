"""The time that the executor spends on ops besides their kernels."""

from __future__ import annotations


def reconcile(sum_s: float, visits: float, step_s: float, empty_step_s: float,
              least_visit_s: float) -> tuple[float, float]:
  """Divides the untraced step into kernels and visits of the executor.

  The seconds that remain after the kernels are divided evenly among the visits.
  If a visit would get less than `least_visit_s`, tracing has slowed the ops
  down. Then the traced seconds are scaled so that each visit gets
  `least_visit_s`, but all visits together at most half of the seconds by which
  the step is longer than an empty step.

  Args:
    sum_s: Traced seconds of all ops.
    visits: Number of ops that the executor visits in a step.
    step_s: Seconds of the untraced step.
    empty_step_s: Seconds of a step without ops, part of `step_s`.
    least_visit_s: Seconds of a visit to an op that does nothing.

  Returns:
    The factor for traced seconds, and the seconds of a visit. `sum_s * factor
    + visits * visit_s + empty_step_s == step_s`, unless the step is shorter
    than an empty one. Then ops and visits take 0 seconds.
  """
  busy_s = max(0., step_s - empty_step_s)
  least_s = min(visits * least_visit_s, busy_s / 2)
  if not visits or not sum_s:
    return 1., busy_s / visits if visits else 0.
  if busy_s - sum_s >= least_s:
    return 1., (busy_s - sum_s) / visits
  return (busy_s - least_s) / sum_s, least_s / visits
