"""Decisions about graphs, kept from one run of a program to the next.

The key of a decision is everything that it depends on: the graph as the pass
received it, feeds and fetches, the cluster with all its figures, the settings
with the files that they name, and the versions. Graphs that call functions are
always decided anew, because the pass's fingerprint does not include these
functions. Graphs that a distribution strategy has placed are left alone, and
nothing is kept about them.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import pathlib
from typing import Any, Mapping, Sequence, TYPE_CHECKING
import zlib

import numpy as np

import gdp_grappler
from gdp_grappler import cache
from gdp_grappler import deadlines
from gdp_grappler import digests
from gdp_grappler import environment
from gdp_grappler import extras
from gdp_grappler import files
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.plugin import devices as devices_lib
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import strategies
from gdp_grappler.plugin import task_links

if TYPE_CHECKING:
  from gdp_grappler.graph import source_graph
  from gdp_grappler.plugin import library

# Number of decisions above which the least recently used are removed.
MOST_ENTRIES = 512
# Bytes of all decisions above which the least recently used are removed.
MOST_BYTES = 64 << 20
# Files of a policy of any kind that change its answers.
POLICY_FILES = ('policy.json', 'weights.npz', 'saved_model.pb',
                'variables/variables.index',
                'variables/variables.data-00000-of-00001')
# No graph has more nodes. A file that claims more is damaged.
_MOST_NODES = 1 << 27
# Ends of the lines of kept decisions.
_RECALLED = '; as decided in an earlier run'
_REPEATED = '; as decided earlier in this run'

# Keys of the decisions that this process kept.
_own: set[str] = set()


def fingerprint(query: library.Query) -> str:
  """Returns the fingerprint of a graph together with its feeds and fetches."""
  return '\n'.join((query.fingerprint, *query.feeds, '', *query.fetches))


def key(
    graph: str, devices: Sequence[str], settings: settings_lib.Settings,
    relocatable: bool = False, fixed: Sequence[int] = (),
    waiting: Sequence[int] = ()
) -> str:
  """Returns the key of a decision; '' if the decision is not kept.

  Args:
    graph: `fingerprint` of the graph; '' if the graph is not from the pass.
    devices: Full names of the devices of the program.
    settings: The user's option.
    relocatable: Whether variables may move.
    fixed: Nodes that stay although variables may move.
    waiting: Nodes of variables that are on the host until they are placed.

  Raises:
    ClusterError: the cluster of the settings is unknown.
  """
  if not graph or not settings.cache:
    return ''
  cluster = task_links.of(settings, devices)
  plan = settings.plan if isinstance(settings.plan, str) else None
  policy = settings.policy or environment.policy_folder() or _shipped()
  parts = (graph, *devices, settings.to_json(), repr(cluster), str(relocatable),
           *map(str, fixed), '', *map(str, waiting),
           *map(_stamp,
                (settings.profile, plan, *_of_policy(policy))), _software())
  # Names of files need not be UTF-8.
  data = '\0'.join(parts).encode(errors='surrogatepass')
  return hashlib.sha256(data).hexdigest()[:32]


def _shipped() -> str:
  return shipped_policy.shipped_policy() if shipped_policy.has_policy() else ''


def _of_policy(folder: str) -> list[str]:
  """Returns the paths of the files that a policy may have."""
  return [os.path.join(folder, file) for file in POLICY_FILES if folder]


def _stamp(path: str | None) -> str:
  """Returns path, size and time of change of a file; '' without a path.

  Of a folder the content does not count: a wrong path may name a folder of any
  size, and listing it may take longer than the time that a graph has.
  """
  if not path:
    return ''
  path = os.path.realpath(path)
  try:
    status = os.stat(path)
  except OSError:
    return path  # Reading the file will fail and report the reason.
  return f'{path} {status.st_size} {status.st_mtime_ns}'


@functools.cache
def _software() -> str:
  """Returns versions, the files of this package, and optional libraries."""
  import tensorflow as tf
  package = pathlib.Path(gdp_grappler.__file__).parent
  code = [
      f'{path} {path.stat().st_size} {path.stat().st_mtime_ns}'
      for path in sorted((*package.rglob('*.py'), *package.rglob('*.so')))
  ]
  return '\n'.join(
      (gdp_grappler.__version__, tf.__version__, *extras.of_placers(), *code))


def recall(name: str, devices: Sequence[str]) -> outcome_lib.Outcome | None:
  """Returns the kept decision of a key; None if it is missing or damaged.

  Args:
    name: Result of `key`.
    devices: Full names of the devices of the program.
  """
  if not name:
    return None
  place = _place(name)
  data = cache.kept(place, notices.warn_once)
  if data is None:
    return None
  try:
    result = _from_json(files.parse_json(data), name, frozenset(devices))
  except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
    notices.warn_once(f'{place} is damaged. The graph is placed anew.')
    return None
  try:
    os.utime(place)  # The least recently used decisions are removed first.
  except OSError:
    pass  # Another process removed the file, or only another user may write it.
  return result


def keep(name: str, outcome: outcome_lib.Outcome) -> None:
  """Keeps a decision under a result of `key`; does nothing for ''."""
  if not name:
    return
  _own.add(name)
  place = _place(name)
  cache.keep(place, json.dumps(digests.sealed(_to_json(name, outcome))),
             notices.warn_once)
  cache.make_room(place.parent, MOST_ENTRIES, MOST_BYTES)


def _place(name: str) -> pathlib.Path:
  return cache.path('decisions', f'{name}.json')


def _to_json(name: str, outcome: outcome_lib.Outcome) -> dict[str, Any]:
  names = sorted(set(outcome.devices or ()))
  index = {name: i for i, name in enumerate(names)}
  numbers = np.array([index[name] for name in outcome.devices or ()], '<i4')
  packed = base64.b64encode(zlib.compress(numbers.tobytes(), 1)).decode()
  return dict(key=name, names=names,
              devices=packed if outcome.devices else None,
              message=outcome.message, control_edges=outcome.control_edges,
              before_s=outcome.before_s, after_s=outcome.after_s,
              fitted=outcome.fitted, topic=outcome.topic)


def _from_json(fields: Mapping[str, Any], name: str,
               devices: frozenset[str]) -> outcome_lib.Outcome:
  """Returns the decision in a result of `_to_json`.

  Args:
    fields: Result of `_to_json`.
    name: Key of the decision.
    devices: Full names of the devices of the program.

  Raises:
    ValueError, KeyError, TypeError, AttributeError or zlib.error: the fields
      are damaged.
  """
  if digests.FIELD not in fields or digests.differs(fields):
    raise ValueError('changed since it was written')
  if fields['key'] != name:
    raise ValueError('a decision about another graph')
  names, placed = list(fields['names']), None
  if not set(names) <= devices:
    raise ValueError('devices of another program')
  if fields['devices'] is not None:
    data = zlib.decompressobj().decompress(
        base64.b64decode(fields['devices'], validate=True), 4 * _MOST_NODES)
    numbers = np.frombuffer(data, '<i4')
    if numbers.min(initial=0) < 0 or numbers.max(initial=-1) >= len(names):
      raise ValueError('devices that it does not name')
    placed = tuple(np.array(names, object)[numbers].tolist())
  edges = tuple((int(a), int(b)) for a, b in fields['control_edges'])
  when = _REPEATED if name in _own else _RECALLED
  message = fields['message'] and str(fields['message']) + when
  return outcome_lib.Outcome(placed, message, edges, fields['before_s'],
                             fields['after_s'], fitted=bool(fields['fitted']),
                             topic=str(fields['topic']))


def optimize(
    source: source_graph.SourceGraph, settings: settings_lib.Settings, *,
    relocatable: bool = False, fixed: Sequence[int] = (),
    waiting: Sequence[int] = ()
) -> outcome_lib.Outcome:
  """Returns the kept decision, or else the decision of `optimizer.optimize`.

  A graph that a distribution strategy has placed is left as it was. No decision
  about it is kept, because the check takes little time.

  Args:
    source: The graph, with the devices that TensorFlow chose.
    settings: The user's option.
    relocatable: Whether variables that a function receives may move.
    fixed: See `key`.
    waiting: See `key`.

  Raises:
    GdpError: the settings do not fit the graph or the machine.
  """
  if not devices_lib.why_no_choice(
      source.devices, settings) and (reason := strategies.why_not(source)):
    return outcome_lib.Outcome(None, f'{source.name}: left as it was: {reason}')
  name = key(source.fingerprint, source.devices, settings, relocatable, fixed,
             waiting)
  known = recall(name, source.devices)
  if known is not None and len(source.graph_def.node) == len(
      known.devices or source.graph_def.node):
    return known
  # Imported when a graph has to be placed.
  with deadlines.LOADING.running():
    from gdp_grappler.plugin import optimizer
  result = optimizer.optimize(source, settings, relocatable=relocatable)
  if name and not _calls_functions(source):
    keep(name, result)
  return result


def _calls_functions(source: source_graph.SourceGraph) -> bool:
  """Whether the effect of some op depends on the library of functions."""
  from gdp_grappler.graph.control_flow import calls
  types = {node.op for node in source.graph_def.node}
  own = {f.signature.name for f in source.graph_def.library.function}
  return bool(types & (calls.KINDS | own))
