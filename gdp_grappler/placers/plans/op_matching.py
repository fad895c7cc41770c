"""Finds the ops of a plan in another graph, by several forms of their names.

Grappler renames ops, and a second trace of a model has other numbers in names.
So an op is looked up by these forms of its name, in this order:

1. The full name.
2. Ranks in place of numbers (`numbered_names`).
3. The full name without the calls that the op was inlined from. `predict` calls
   the functions of a model differently than `fit` does.
4. Ranks of the names without these calls.
5. The name without the last number of each scope.
6. The name without all numbers at the end of each scope.

If ranks make the names of both graphs equal, they come before the full names.
For example, the plan may have `dense` and `dense_1`, and the graph `dense_1`
and `dense_2`. The same holds for the names without calls.
"""

from __future__ import annotations

from typing import Collection, Iterator, Mapping, Sequence

from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import numbered_names
from gdp_grappler.graph import name_parts


def candidates(devices: Mapping[str, str],
               names: Sequence[str]) -> list[set[str]]:
  """Returns devices of each op in a plan, by the first form that is known.

  Args:
    devices: Device of each op of the plan, by name.
    names: [N], names of the ops to look up.

  Returns:
    [N] sets: empty if the plan does not know an op, and several devices if the
    plan has ops with the same form of the name on different devices.
  """
  result: list[set[str]] = [set()] * len(names)
  forms = [*zip(_forms(names), _forms(devices))]
  for first in (0, 2):
    ours, theirs = forms[first + 1]
    if set(ours) == set(theirs):
      forms[first:first + 2] = forms[first + 1], forms[first]
  for ours, theirs in forms:
    known: dict[str, set[str]] = {}
    for form, device in zip(theirs, devices.values()):
      known.setdefault(form, set()).add(device)
    result = [own or known.get(form, set()) for own, form in zip(result, ours)]
  return result


def _forms(names: Collection[str]) -> Iterator[Sequence[str]]:
  """Yields all names in each form of the module's docstring."""
  yield [*names]
  yield numbered_names.ranked(names)
  without_calls = [*map(name_parts.without_calls, names)]
  yield without_calls
  yield numbered_names.ranked(without_calls)
  yield [*map(layer_map.bare_name, names)]
  yield [*map(layer_map.plain_name, names)]
