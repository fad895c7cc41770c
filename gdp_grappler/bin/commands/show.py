"""`gdp show`: a plan by layer, and as a map of layers to be edited."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING

from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.bin.commands import common

if TYPE_CHECKING:
  from gdp_grappler.api import placed_step
  from gdp_grappler.cluster import cluster as cluster_lib


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'show', help='print device, memory, time and sent tensors of each layer')
  common.add_plan(parser)
  parser.add_argument(
      '--all', action='store_true',
      help='print a row for each layer; by default consecutive layers on one '
      'device may share a row')
  parser.add_argument(
      '--output', type=common.json_file, metavar='FILE.json',
      help='write the devices of the layers to this file, which can be edited '
      'and is a plan')
  parser.add_argument('--json', action='store_true', help='print JSON')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Prints the plan by layer."""
  if arguments.output:
    common.check_output(arguments.output, arguments)
  placed = common.planned_step(arguments, arguments.plan)
  progress.doing('looking at its layers')
  if arguments.output:
    files.write_atomically(arguments.output,
                           json.dumps(placed.layer_map(), indent=1) + '\n')
  common.say_result(arguments, placed,
                    lambda: placed.summary(every_layer=arguments.all))
  if arguments.output and not (arguments.quiet or arguments.json):
    common.say_words(_next_step(arguments, placed))
  return 0


def _typed(cluster: cluster_lib.Cluster, plan: str) -> str:
  """Returns the argument for the cluster of a plan.

  The name of the cluster may not be a name that --cluster accepts.
  """
  from gdp_grappler.cluster import presets
  return cluster.name if presets.has_name_of(cluster) else plan


def _next_step(arguments: argparse.Namespace,
               placed: placed_step.PlacedStep) -> str:
  """Returns the command that uses the map of layers, with its arguments."""
  where = arguments.cluster or _typed(placed.step.cluster, arguments.plan)
  given = [('cluster', where), ('calibration', arguments.calibration),
           ('max_memory', arguments.max_memory), ('plan', arguments.output)]
  options = shlex.join(f'--{key}={value}' for key, value in given if value)
  return (f'Next: edit {shlex.quote(arguments.output)}, then gdp place '
          f'{common.request(arguments).typed()} {options} --output=FILE.json')
