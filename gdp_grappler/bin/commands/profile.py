"""`gdp profile`: measure the seconds of each op of a graph."""

from __future__ import annotations

import argparse
import os
import re
import shlex

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.bin.commands import common
from gdp_grappler.problems import help_texts
from gdp_grappler.reports import units


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser('profile',
                               help='measure what each op of a graph takes')
  common.add_graph(parser, help_texts.RUNNABLE_GRAPH)
  parser.add_argument(
      '--cluster', default='local',
      help=("'local' (default), or grpc://HOST:PORT of a TensorFlow cluster"))
  parser.add_argument(
      '--local_workers', type=common.not_negative, default=0, metavar='N',
      help='start N TensorFlow servers that divide the cores of this machine, '
      'and profile each')
  parser.add_argument(
      '--devices', type=_kinds, default=(), metavar='KINDS',
      help="what to profile here: gpu, cpu or gpu,cpu (default gpu where there "
      'is one, else cpu)')
  parser.add_argument(
      '--time_budget_s', type=common.seconds, default=45.,
      help='seconds that measuring a device may take (default %(default)g). If '
      'steps are long, fewer steps are traced')
  parser.add_argument(
      '--cores', type=_cores, default=(),
      help=('cores that may run the graph, such as 0 or 0,1 (default all)'))
  parser.add_argument(
      '--steps', type=common.positive, default=20,
      help='traced steps, of which medians are taken (default %(default)s)')
  parser.add_argument('--output', required=True, type=common.json_file,
                      metavar='FILE.json', help='profile to write')
  common.add_cache(parser, 'earlier profiles')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Measures every device, writes the file, prints a line for each."""
  _check(arguments)
  progress.doing(f'profiling {arguments.graph}')
  from gdp_grappler.problems import request as request_lib
  request = request_lib.Request(arguments.graph, arguments.batch_size,
                                signature=arguments.signature,
                                shapes=tuple(arguments.shape))
  request.origin.check_path()  # TensorFlow takes seconds to load.
  common.load_tensorflow()
  from gdp_grappler.evaluation.profiling import profiler
  from gdp_grappler.problems import reading
  progress.doing(f'reading {arguments.graph}')
  source = reading.source(request, common.tell)
  options = dict(batch_size=arguments.batch_size, steps=arguments.steps,
                 refresh=arguments.refresh, cache_dir=arguments.cache_dir,
                 budget_s=arguments.time_budget_s, tell=common.tell)
  if arguments.local_workers:
    result = profiler.profile_local_workers(source, arguments.local_workers,
                                            **options)
  else:
    places = (profiler.local_places(arguments.cores, arguments.devices)
              if arguments.cluster == 'local' else profiler.remote_places(
                  arguments.cluster))
    result = profiler.profile_devices(source, places, **options)
  result.save(arguments.output)
  for device in result.devices:
    work = f'{units.ms(device.seconds.sum())} of kernels, step'
    if device.type != 'GPU':  # The host works in parallel to a GPU.
      work = (f'{units.ms(device.seconds.sum())} + '
              f'{device.visits.sum():.0f} visits of '
              f'{device.visit_s * 1e6:.3g} us + '
              f'{units.ms(device.empty_step_s, 3)} for an empty step =')
    common.say_words(f'{result.graph} on {device.name} ({device.model}): '
                     f'{int((device.executions > 0).sum())} ops, '
                     f'{work} {units.ms(device.step_s)}')
  common.say(f'Wrote {arguments.output}; gdp place and gdp simulate take it '
             f'by --profile={shlex.quote(arguments.output)}.')
  return 0


def _check(arguments: argparse.Namespace) -> None:
  """Raises errors about arguments before the work begins."""
  cluster, remote = arguments.cluster, arguments.cluster.startswith('grpc://')
  if cluster != 'local' and not remote:
    raise errors.GdpError(
        f'Cannot profile on "{cluster}": what is measured has to run. Give '
        '--cluster=local or --cluster=grpc://HOST:PORT.')
  if arguments.local_workers and (remote or arguments.cores):
    raise errors.GdpError('--local_workers divides the cores of this machine; '
                          'leave out --cores and --cluster=grpc://.')
  if arguments.devices and (remote or arguments.local_workers):
    raise errors.GdpError('--devices are of this machine; leave it out with '
                          '--local_workers and --cluster=grpc://.')
  if arguments.cores and remote:
    raise errors.GdpError(f'--cores are of this machine; {cluster} has its '
                          'own. Leave out --cores.')
  lacking = set(arguments.cores) - os.sched_getaffinity(0)
  if lacking:
    raise errors.GdpError(
        f'--cores names core {min(lacking)}, which this process may not use; '
        f'it has {", ".join(map(str, sorted(os.sched_getaffinity(0))))}.')
  common.check_output(arguments.output, arguments)


def _kinds(text: str) -> tuple[str, ...]:
  kinds = tuple(text.upper().split(','))
  if not set(kinds) <= {'CPU', 'GPU'}:
    raise argparse.ArgumentTypeError(
        f'it is {text!r}; give gpu, cpu or gpu,cpu')
  return kinds


def _cores(text: str) -> tuple[int, ...]:
  if not re.fullmatch('[0-9]+(,[0-9]+)*', text):
    raise argparse.ArgumentTypeError(
        f'"{text}" is no list of cores; give their numbers, such as 0 or 0,1')
  return tuple(map(int, text.split(',')))
