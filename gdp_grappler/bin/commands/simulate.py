"""`gdp simulate`: price a plan, and draw its schedule."""

from __future__ import annotations

import json

from gdp_grappler.bin.commands import common


def add(commands) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'simulate', help='price a plan, and draw its schedule')
  common.add_graph(parser)
  parser.add_argument('--plan', required=True, help='a plan file')
  parser.add_argument('--trace', help='write a Chrome trace to this file')
  parser.add_argument('--json', action='store_true', help='print JSON')
  parser.set_defaults(action=run)


def run(arguments) -> int:
  """Prices, draws and says so."""
  # pylint: disable=g-import-not-at-top
  from gdp_grappler.cluster import plan
  from gdp_grappler.reports import timeline
  _, graph, cluster, simulator = common.read(arguments)
  placement = plan.load(arguments.plan, graph, cluster)
  common.refuse_illegal(placement, graph)
  evaluation = simulator.evaluate(graph, placement)
  if arguments.trace:
    timeline.write_chrome_trace(arguments.trace, graph,
                                simulator.schedule(graph, placement), placement)
  if arguments.json:
    print(json.dumps({
        'graph': graph.name, 'cluster': cluster.name, 'simulated': True,
        'step_time_s': evaluation.step_time_s, 'valid': evaluation.valid,
        'peak_bytes': list(evaluation.peak_bytes),
        'violations': [v.message for v in evaluation.violations]}))
  else:
    print(f'{graph.name}: {graph.num_ops} ops on {cluster.name}: step '
          f'{evaluation.step_time_s * 1e3:.4g} ms (simulated); peak '
          + ', '.join(f'{b / 1e9:.2f} GB' for b in evaluation.peak_bytes))
    common.warn(evaluation)
  return 0
