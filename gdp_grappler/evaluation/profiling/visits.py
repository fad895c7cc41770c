"""The time that the executor spends on ops besides their kernels."""

from __future__ import annotations


def reconcile(sum_s: float, visits: float, step_s: float, empty_step_s: float,
              least_visit_s: float) -> tuple[float, float]:
  """What is left of a step once the ops have had their time.

  The rest of the untraced step is the executor's and is divided evenly among
  the visits. If less is left than a visit costs at least, tracing has slowed
  the ops down: they are scaled so that it is left.

  Args:
    sum_s: Seconds of all ops, as traced.
    visits: How many ops the executor looked at.
    step_s: The untraced step.
    empty_step_s: Its part that is there without any op.
    least_visit_s: Of a visit to an op that does nothing.

  Returns:
    The factor for traced seconds, and the seconds of a visit; `sum_s * factor
    + visits * visit_s + empty_step_s == step_s` unless the step is shorter
    than an empty one, when ops and visits are free.
  """
  busy_s = max(0., step_s - empty_step_s)
  least_s = min(visits * least_visit_s, busy_s / 2)
  if not visits or not sum_s:
    return 1., busy_s / visits if visits else 0.
  if busy_s - sum_s >= least_s:
    return 1., (busy_s - sum_s) / visits
  return (busy_s - least_s) / sum_s, least_s / visits
