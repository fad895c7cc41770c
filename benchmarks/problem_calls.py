"""How often a `Problem` goes from one module to another in a search.

Run it from the repository:

  python -m benchmarks.problem_calls wavenet-2x18@tiny@2xP100

The program runs the default placer once. It counts the calls between two
modules in which a `Problem` is an argument or the result. Readers follow these
calls to understand a search. Methods of `Problem` itself do not count.

Prints a list of {"caller", "module", "function", "calls"}. Without --json, a
table, whose last rows are the sum, and the sum without the calls from and to
the placers that propose starts.
"""

from __future__ import annotations

import collections
import dataclasses
import sys
import types
from typing import Callable, Sequence

from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.placers import default_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.problems import reading

_TITLE = 'Problem calls'
_PACKAGE = 'gdp_grappler.'
_PLACERS = 'gdp_grappler.placers.'
# Packages whose placers propose starts.
_STARTS = tuple(_PLACERS + name
                for name in ('coordinates', 'list_scheduling', 'partitioning',
                             'policy', 'simple'))


@dataclasses.dataclass(frozen=True, order=True)
class Call:
  """A function that gets or returns a `Problem`, and the module that calls it.

  Attributes:
    caller: Module of the caller.
    module: Module of the function.
    function: Qualified name of the function.
  """

  caller: str
  module: str
  function: str


def main(argv: Sequence[str] | None = None) -> int:
  """Prints the table or the list.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, or 2 after a line about a GdpError.
  """
  options = tables.parser('problem_calls', __doc__)
  options.add_argument('task', metavar='GRAPH@CLUSTER')
  options.add_argument('--seconds', type=float, default=5.)
  arguments = tables.parse(options, argv)
  return tables.show(arguments, _TITLE,
                     lambda: _table(arguments.task, arguments.seconds))


def calls_of(run: Callable[[], object]) -> collections.Counter[Call]:
  """Calls between modules with a `Problem`, and how often each was made.

  Args:
    run: Runs a search, in this thread.
  """
  result: collections.Counter[Call] = collections.Counter()
  waiting: set[types.FrameType] = set()

  def observe(frame: types.FrameType, event: str, argument: object) -> None:
    caller, module = _module(frame.f_back), _module(frame)
    if (event not in ('call', 'return') or caller == module or
        placer_lib.__name__ in (caller, module) or
        not module.startswith(_PACKAGE)):
      return
    call = Call(caller, module, frame.f_code.co_qualname)
    if event == 'call' and _has_problem(frame):
      waiting.add(frame)
      result[call] += 1
    elif event == 'return':
      if isinstance(argument, placer_lib.Problem) and frame not in waiting:
        result[call] += 1
      waiting.discard(frame)

  before = sys.getprofile()
  sys.setprofile(observe)
  try:
    run()
  finally:
    sys.setprofile(before)
  return result


def _module(frame: types.FrameType | None) -> str:
  return '' if frame is None else frame.f_globals.get('__name__', '')


def _has_problem(frame: types.FrameType) -> bool:
  code = frame.f_code
  names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
  return any(
      isinstance(frame.f_locals.get(name), placer_lib.Problem)
      for name in names)


def _table(task: str, seconds: float) -> tables.Table:
  step = reading.read_task(task, progress.doing)
  simulator = step.simulator()
  problem = dataclasses.replace(step.problem(simulator), simulator=simulator,
                                time_budget_s=seconds)
  placer = default_placer.DefaultPlacer()
  progress.doing('searching')
  found = sorted(calls_of(lambda: placer.proposals(problem)).items())
  of_search = sum(count for call, count in found
                  if not call.module.startswith(_STARTS) and
                  not call.caller.startswith(_STARTS))
  cells = [[
      call.caller.removeprefix(_PLACERS),
      call.module.removeprefix(_PLACERS), call.function,
      str(count)
  ] for call, count in found]
  cells.append(['all', '', '', str(sum(count for _, count in found))])
  cells.append(['without starts', '', '', str(of_search)])
  return tables.Table(
      'calls with a Problem between two modules',
      ('caller', 'module', 'function', 'calls'), cells,
      [{**dataclasses.asdict(call), 'calls': count} for call, count in found])


if __name__ == '__main__':
  sys.exit(main())
