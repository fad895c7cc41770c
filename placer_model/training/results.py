"""The result of a run: results.json, the table and the verdict."""

from __future__ import annotations

import pathlib
import shlex
from typing import Any, Mapping, Sequence

import numpy as np

from gdp_grappler import environment
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.reports import tables as tables_lib
from placer_model import versions as versions_lib
from placer_model.training import baselines as baselines_lib
from placer_model.training import network_kinds

SCHEMA = 3  # Version of the format of results.json.
# Name of a run's result in tables. ('gdp' is the default placer.)
TRAINED = 'gdp_train'
_SINGLE = 'single_device'
_PACKAGES = ('tensorflow', 'tf-agents', 'tensorflow-gnn', 'tf-keras', 'numpy')
_WORDS = 'All words: gdp glossary.'
# For each kind of network, the field and the heading of the policy's column in
# the table of several graphs, and what columns mean.
_COLUMNS = {
    network_kinds.ONE_SHOT:
        ('policy_step_time_s', 'policy',
         'Units: what the policy decides on, groups of ops joined along their '
         'largest tensors. Policy: its likeliest placement.'),
    network_kinds.MOVES:
        ('policy_price_s', "policy's price",
         "Units: groups of ops that share a device. Policy's price: the robust "
         'price of the best placement that learning found.')
}
# Words for origins of placements. Other origins are names of placers.
_ORIGINS = {
    'policy': 'the policy', 'greedy': 'the policy', 'draft': 'a simple placer',
    'search': 'a search of this run', 'baseline': 'a placer at the first start'
}
# Largest relative difference of equal step times. The simulator's sums round.
_SAME = 1e-9
# Parts of the messages of TensorFlow and Linux if a step needs too much memory.
# Another placement may need less.
_WANT_OF_MEMORY = ('OOM', 'allocate memory', 'want of memory')


def versions() -> dict[str, str]:
  """Returns the versions of Python and of the packages of a run."""
  return versions_lib.of(_PACKAGES)


def entry(result: baselines_lib.Result) -> dict[str, Any]:
  """Returns one placer's part of results.json.

  `step_time_s` is the step time with ready ops first in, first out.
  `ordered_step_time_s` is that with control edges. Each is null if there is no
  such price.
  """
  cluster = result.placement.cluster
  evaluation = result.evaluation
  return {
      'step_time_s': _seconds(evaluation),
      'ordered_step_time_s': _seconds(result.ordered),
      'valid': evaluation.valid,
      'violations': [v.message for v in evaluation.violations[:5]],
      'peak_bytes': _per_device(evaluation, cluster),
      'ops': result.placement.counts(),
      'simulated': evaluation.simulated,
      'evaluations': result.evaluations,
      'seconds': round(result.seconds, 3),
      'seed': result.seed,
  }


def never_runs(
    evaluations: Sequence[evaluator_lib.Evaluation]
) -> placement_lib.Violation | None:
  """Returns the first violation if steps fail with every placement.

  None is returned if any placement is valid, or fails because of memory.
  """
  violations = [v for e in evaluations for v in e.violations]
  if evaluations and all(
      not e.valid and all(v.kind == 'run' and not _wants_memory(v)
                          for v in e.violations) for e in evaluations):
    return violations[0]
  return None


def why_none_is_valid(violations: Sequence[placement_lib.Violation]) -> str:
  """Returns a sentence on why no placement is valid, and the remedy.

  Args:
    violations: Violations of some of the placements, at least one.
  """
  if all(v.kind == 'memory' for v in violations):
    return ('No placement that fits into memory was found, so there is nothing '
            'to export. Give more --iterations, or a cluster with more memory.')
  if all(v.kind == 'memory' or _wants_memory(v) for v in violations):
    remedy = 'Give more --iterations, or a cluster with more memory.'
  else:
    remedy = 'Mend that, or use --reward=simulated.'
  first = next(v for v in violations if v.kind != 'memory')
  return ('No placement that runs was found, so there is nothing to export. '
          f'The first failure: {first.message.rstrip(". ")}. {remedy}')


def _wants_memory(violation: placement_lib.Violation) -> bool:
  return any(sign in violation.message for sign in _WANT_OF_MEMORY)


def verdict(placers: Mapping[str, Mapping[str, Any]], reward: str) -> str:
  """Returns one line that says what the run has found.

  Args:
    placers: Name to `entry`, with 'single_device' and the run's own result.
    reward: One of `rewards.ALL`.
  """
  best, own, single = _best(placers), placers[TRAINED], placers[_SINGLE]
  if best is None:
    return f'No placement that runs was found: {_failure(own)}.'
  if best == _SINGLE:
    said = f'{_main_device(single)} alone is the best found ({reward})'
  elif best != TRAINED:
    said = (f'The placement of {best} is the best found, '
            f'{_ms(placers[best])} ({reward}); '
            f'{_beside(own, best, placers[best]["step_time_s"])}')
  else:
    said = _of_best(own, single, reward)
  return f'{said}.{_by_policy(own)}'


def _of_best(own: Mapping[str, Any], single: Mapping[str, Any],
             reward: str) -> str:
  """Returns a text for a run whose placement is the best."""
  found = f'{TRAINED} found the best placement: {_ms(own)}'
  if not single['valid']:
    return f'{found} ({reward}); no single device runs it: {_failure(single)}'
  where = ', '.join(device for device, count in own['ops'].items() if count)
  return (f'{found} on {where}, {_ratio(single, own)} as fast as the best '
          f'single device ({reward})')


def _beside(own: Mapping[str, Any], best: str, step_s: float) -> str:
  """Returns a text for a run beside the best placer and its step."""
  if not own['valid']:
    return f'{TRAINED} found no placement that runs: {_failure(own)}'
  if own['found_by'] == best and own['step_time_s'] <= step_s * (1 + _SAME):
    return f'{TRAINED} keeps it, {_ms(own)}'
  if own['found_by'] == best:
    return (f'{TRAINED} has the nearest placement that splits none of its '
            f'units, {_ms(own)}')
  return f'that of {TRAINED}, by {_origin(own)}, takes {_ms(own)}'


def _by_policy(own: Mapping[str, Any]) -> str:
  """Returns a sentence on the policy if its placement is not the best."""
  origin = _origin(own)
  if not origin or 'policy_best_step_time_s' not in own or (
      origin == _ORIGINS['policy']):
    return ''
  if own['policy_best_step_time_s'] is None:
    return ' The policy itself found no placement that runs.'
  imitates = ' (the policy also imitates the best placement)'
  return (" The policy's own best placement takes "
          f'{_ms(own, "policy_best_step_time_s")}'
          f'{imitates * own.get("imitates", False)}.')


def _origin(own: Mapping[str, Any]) -> str:
  """Returns words for the origin of the run's placement; '' for none."""
  found_by = own['found_by']
  return _ORIGINS.get(found_by, found_by)


def tables(record: Mapping[str, Any]) -> tuple[str, ...]:
  """Returns the texts that a run prints at its end.

  For one graph, they are a table of placers and the verdict. For several
  graphs, they are one table with a row per graph.

  Args:
    record: Content of results.json.
  """
  graphs, reward = record['graphs'], record['reward']
  if len(graphs) > 1:
    return (_of_graphs(graphs, reward, record['network']),)
  [graph] = graphs
  return (table(graph['name'], graph['cluster']['name'], graph['placers'],
                reward), tables_lib.wrapped(graph['verdict']))


def next_steps(record: Mapping[str, Any], model_dir: pathlib.Path, graph: str,
               plan: pathlib.Path) -> str:
  """Returns commands that use the result of a run.

  Args:
    record: Content of results.json.
    model_dir: Model directory of the run.
    graph: Argument that gives the plan's graph to `gdp`.
    plan: File of a plan that the run has written.
  """
  policy = shlex.quote(str(model_dir / 'policy'))
  lines = [
      'Next:', *_without_policy(record['graphs']),
      f'  {environment.PLACEMENT}=1 {environment.POLICY}={policy} '
      'python YOUR_PROGRAM.py',
      f'  gdp place GRAPH --cluster=CLUSTER --policy={policy} '
      '--output=plan.json',
      f'  gdp report {graph} --plan={shlex.quote(str(plan))} '
      '--output=report.html'
  ]
  return '\n'.join(lines)


def _without_policy(graphs: Sequence[Mapping[str, Any]]) -> list[str]:
  """Returns lines for the case that another placer beats the policy."""
  if len(graphs) > 1:
    return []
  placers = graphs[0]['placers']
  best = _best(placers)
  if best in (None, TRAINED):
    return []
  if best == _SINGLE:
    return [
        '  nothing is gained by placing this graph here: leave the program as '
        'it is,', '  or try more --iterations, a larger --batch_size or '
        'another --cluster; else'
    ]
  return [
      f'  gdp place GRAPH --cluster=CLUSTER --placer={best} '
      '--output=plan.json', '  or more --iterations; else'
  ]


def table(graph_name: str, cluster_name: str,
          placers: Mapping[str, Mapping[str, Any]], reward: str) -> str:
  """Returns a table of placers, with the kind of reward in its title."""
  origin = _origin(placers[TRAINED])
  ours = f'{TRAINED}: the best placement of the run, by {origin}. '
  rows = [('placer', 'FIFO step', 'ordered step', 'speed-up', 'peak memory',
           'evaluations', 'seconds')]
  single = placers[_SINGLE]
  for name, item in placers.items():
    rows.append(
        (name, _step(item), _ms(item, 'ordered_step_time_s'),
         _ratio(single,
                item), f'{max(item["peak_bytes"].values()) / 2**30:.2f} GiB',
         str(item['evaluations']), f'{item["seconds"]:.1f}'))
  return tables_lib.titled(
      f'{graph_name} on {cluster_name} ({reward})', rows,
      'FIFO: ready ops in the order in which they became ready, as TensorFlow '
      'does it; ordered: with the control edges that are predicted to pay (-: '
      'invalid, or no time was left to find them). Speed-up: FIFO step of the '
      'best single device / FIFO step. Evaluations: placements priced; '
      f'seconds: of the search. {ours * bool(origin)}{_WORDS}')


def _of_graphs(graphs: Sequence[Mapping[str, Any]], reward: str,
               network: str) -> str:
  """Returns a table with a row per graph."""
  policy, heading, columns = _COLUMNS[network]
  rows = [('graph', 'units', 'single device', heading, TRAINED, 'found by',
           'speed-up')]
  for graph in graphs:
    single, own = (graph['placers'][name] for name in (_SINGLE, TRAINED))
    rows.append((f'{graph["name"]}@{graph["cluster"]["name"]}',
                 str(graph['num_units']), _step(single), _ms(own, policy),
                 _step(own), _origin(own), _ratio(single, own)))
  return tables_lib.titled(
      f'{len(graphs)} graphs, one policy ({reward})', rows,
      f'Steps, first in, first out. {columns} {TRAINED}: the best placement of '
      "the run, and where it is from. Speed-up: single device's step / "
      f"{TRAINED}'s. {_WORDS}")


def _per_device(evaluation: evaluator_lib.Evaluation,
                cluster: cluster_lib.Cluster) -> dict[str, int]:
  """Returns bytes by device; devices with a common memory share the figure."""
  return {
      label: int(evaluation.peak_bytes[pool])
      for label, pool in zip(cluster.device_labels, cluster.memory_pools)
  }


def _best(placers: Mapping[str, Mapping[str, Any]]) -> str | None:
  """Returns the fastest placer; None if no placement runs.

  If other placers are as fast as the run, the result is one of them, because
  the run starts from their placements.
  """
  valid = {
      name: placers[name]['step_time_s']
      for name in sorted(placers, key=lambda name: name == TRAINED)
      if placers[name]['valid']
  }
  return next((name for name, step_s in valid.items()
               if step_s <= min(valid.values()) * (1 + _SAME)), None)


def _failure(item: Mapping[str, Any]) -> str:
  return str(item['violations'][0]).rstrip('. ')


def _main_device(item: Mapping[str, Any]) -> str:
  """Returns the accelerator with the most ops, or the CPU if none has any."""
  ops: Mapping[str, int] = item['ops']
  gpus: Sequence[str] = [d for d, n in ops.items() if n and 'CPU' not in d]
  return max(gpus or ops, key=lambda device: ops[device])


def _seconds(evaluation: evaluator_lib.Evaluation | None) -> float | None:
  if evaluation is None or not np.isfinite(evaluation.step_time_s):
    return None
  return evaluation.step_time_s


def _step(item: Mapping[str, Any]) -> str:
  return _ms(item) if item['valid'] else 'invalid'


def _ms(item: Mapping[str, Any], key: str = 'step_time_s') -> str:
  return '-' if item[key] is None else f'{item[key] * 1e3:.3f} ms'


def _ratio(single: Mapping[str, Any], item: Mapping[str, Any]) -> str:
  if not (single['valid'] and item['valid']):
    return '-'
  return f'{single["step_time_s"] / item["step_time_s"]:.3f}x'
