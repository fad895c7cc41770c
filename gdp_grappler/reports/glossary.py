"""The words that tables, pages and messages use, for `gdp glossary`.

`python -m gdp_grappler.reports.glossary docs/glossary.md` writes the page.
"""

from __future__ import annotations

import pathlib
import sys
import textwrap

from gdp_grappler import errors
from gdp_grappler import suggestions

_WIDTH = 79

TERMS = {
    'AUC':
        'Of `gdp_pretrain`: the probability that a move that gains has a '
        'higher score than a move that does not; 0.5 is chance.',
    'bandwidth':
        'Bytes per second: between a device and its memory, or over a link '
        'between two devices.',
    'baseline':
        'A placement that others are compared with: one device, METIS, '
        'random.',
    'bound':
        'A time that no placement can beat: the critical path without '
        'transfers, or all work divided evenly over all devices, whichever '
        'is longer.',
    'calibration':
        "What `gdp calibrate` measured of a card: the host's time per op, "
        'hops, and the rate of kernels by family and size.',
    'cell':
        'In `gdp_bench`: one placer on one task.',
    'channel':
        'A wire, copy engine or network card that carries one transfer at a '
        'time.',
    'cluster':
        'Devices and the links between them: a preset such as 2xP100, a '
        'file, this machine, or servers.',
    'co-location':
        'A rule of TensorFlow that ties ops to one device, such as a '
        'variable and what reads it.',
    'coarse graph':
        'A small graph made of tiles. A search of a large graph begins in '
        'it.',
    'compute unit':
        'A processor. Devices cut from one processor take turns on it.',
    'control edge':
        'An edge without data: one op starts after another has ended.',
    'coordinates':
        'Where an op is in a structure that repeats itself: its layer, time '
        'step, variable and branch.',
    'copy engine':
        'The part of a GPU that sends or receives while the compute unit '
        'computes.',
    'critical chain':
        'The ops and transfers that the end of a simulated step waits for, '
        'backwards to the beginning of the step.',
    'critical path':
        'The longest path through the graph. The order of that name first '
        'starts the op with the longest path behind it.',
    'cut':
        'Tensors whose producer and consumer are on different devices, and '
        'their bytes. Each is sent once to each other device.',
    'device':
        'A GPU, or the CPU of a host, as TensorFlow names it: GPU:0.',
    'dispatch':
        'Handing an op to a device. A GPU runs the op later, so that '
        'dispatch runs ahead of the GPU.',
    'emulated':
        "Run by TensorFlow's own runtime over GPUs that only pretend to "
        'compute. Order, overlap and waiting are real; seconds are not.',
    'evaluation':
        'Pricing one placement, or running it.',
    'expert':
        'The placement that a human would choose: whole layers on devices.',
    'family':
        'Ops of one kind, such as matmul or convolution, which reach the '
        "same share of a device's peak rate.",
    'FIFO':
        "First in, first out: TensorFlow's order of ready ops. A step is "
        'FIFO unless a table says otherwise.',
    'fits':
        'No memory is exceeded. A placement that does not fit is also '
        'called OOM, out of memory.',
    'gap':
        'Of the critical chain: a time in which nothing of the chain runs, '
        'such as the launch of a kernel or the latency of a copy.',
    'GDP':
        'The paper behind this project: a policy that learns on many '
        'graphs. `gdp` is the default placer, a search that begins with '
        'simple placers and the policy.',
    'graph':
        'What TensorFlow runs for a step: ops, and the tensors between '
        'them.',
    'group':
        'Ops that TensorFlow wants on one device. A placement decides per '
        'group.',
    'guard':
        'Times the first steps of a `fit`, as they were and placed, and '
        'keeps the faster way.',
    'HDP':
        'An earlier paper. Its planner learns each graph anew.',
    'held out':
        'Not used for learning. Results on held-out graphs tell how well a '
        'network generalizes.',
    'human':
        'See expert.',
    'imitation':
        'Learning to repeat placements that another method found.',
    'iteration':
        'Of `gdp_train`: some placements are sampled, priced and learned '
        'from.',
    'kernel':
        'The code that runs an op on a type of device. An op can only be on '
        'a device that has a kernel for it.',
    'lane':
        'A process of `gdp_bench` that runs cells one after the other.',
    'latency':
        'The time that a transfer or message takes even without bytes.',
    'launch':
        'The fixed time that a device needs to begin an op.',
    'layer':
        'A part of a model, as its user named it: a name scope that uses '
        'variables. In a table, its gradients and updates belong to it.',
    'link':
        'The connection of two devices, with its latency and bandwidth.',
    'MAPE':
        'Mean absolute percentage error of simulated steps against measured '
        'or emulated ones.',
    'measured':
        'Run and timed.',
    'message':
        'What crosses devices for a control edge or an empty tensor: it '
        'takes latency, and has no bytes.',
    'METIS':
        'A library that divides graphs into equal parts. The placer `metis` '
        'gives each device one part.',
    'move':
        'Of a search: some groups go to other devices.',
    'move network':
        'A small network that predicts which moves make a placement faster.',
    'OOM':
        'Out of memory: a placement exceeds a memory.',
    'op':
        'One operation of a graph, such as a MatMul.',
    'ordered':
        'With the control edges that enforce a better order than first in, '
        'first out. They change no number.',
    'parameters':
        "Variables of a layer, without the optimizer's slots.",
    'peak memory':
        'The largest use of a memory during a step.',
    'pin':
        'A rule that an op stays on a device. It comes from the user, or '
        'the op is tied to the host.',
    'placement':
        'A device for each op of a graph.',
    'placer':
        'An algorithm, a search or a policy that turns a graph into a '
        'placement.',
    'plan':
        'A file that says which op of a graph goes where.',
    'policy':
        "GDP's network: the probability of each device for every op. As a "
        'file, the folder of either network that `gdp_train` writes.',
    'pool':
        'A memory, of one device or shared by several.',
    'portfolio':
        'A placer that makes several placements; the best by price wins.',
    'preset':
        'A cluster by name, such as 2xP100.',
    'price':
        'The predicted cost of a placement: its step time, and the bytes '
        'that exceed a memory.',
    'priority':
        'A number that says which ready op starts first. Control edges '
        'enforce it.',
    'profile':
        'Measured seconds of the ops of a graph. They take the place of the '
        'roofline.',
    'rate':
        'FLOPs per second of a device.',
    'reached':
        "The share of a device's peak rate that ops get.",
    'reward':
        'The number that a policy learns to increase. A shorter step has a '
        'larger reward.',
    'robust price':
        'What searches minimize: the simulated step, longer where a small '
        'change of seconds and bytes makes it longer.',
    'rollout':
        'A placement sampled from a policy.',
    'roofline':
        'The time of an op that is limited by arithmetic or by memory '
        'bandwidth, whichever takes longer.',
    'simulated':
        "Computed event by event by the rules of TensorFlow's executor. "
        'Nothing was run.',
    'slot':
        'A place in a compute unit. A unit runs as many ops at a time as it '
        'has slots.',
    'Spearman':
        'Rank correlation: 1 if the simulator ranks placements as measured '
        'steps do.',
    'speed-up':
        'The other step time divided by ours. The other is one device '
        'unless a table says otherwise.',
    'stage':
        'A part of a workload that the expert places as a whole.',
    'start':
        'A placement with which a search begins.',
    'step':
        'One run of a graph, such as of the training of one batch.',
    'task':
        'In `gdp_bench`: a graph on a cluster. In a cluster: one of its '
        'servers.',
    'tensor':
        'What an op hands to other ops: numbers, and the bytes that they '
        'take.',
    'tile':
        'The ops of one layer in one time step, in a graph that repeats '
        'itself.',
    'transfer':
        'A tensor on its way from one device to another.',
    'trip count':
        'The number of iterations of a while loop.',
    'unit':
        'Groups joined along their largest tensors. The policy decides per '
        'unit.',
    'valid':
        'Of a placement: it fits, and every op has a kernel on its device.',
    'variable':
        'A tensor that outlives the step, such as weights. Ops that use a '
        'variable are on its device.',
    'waiting':
        'The part of a step in which a device neither computes nor copies.',
    'warm-up':
        'The part of `gdp_train` before sampling: it prices the baselines, '
        'searches, and lets the policy imitate what it found.',
    'workload':
        "A training graph of the papers, built by this project's own code.",
    'workspace':
        'Memory that an op needs while it runs, besides its inputs and '
        'outputs.',
}


def text(word: str = '') -> str:
  """Definitions for a terminal, of at most 79 columns.

  Args:
    word: A term, in any case; '' for all of them.

  Raises:
    GdpError: there is no such term.
  """
  return '\n'.join(_entry(term) for term in _terms(word))


def markdown() -> str:
  """All definitions as a page."""
  rows = ''.join(f'| {term} | {meaning} |\n' for term, meaning in TERMS.items())
  return (
      '# Glossary\n\n`gdp glossary` prints these words, `gdp glossary FIFO` '
      f'one of them.\n\n| word | meaning |\n|---|---|\n{rows}')


def _terms(word: str) -> list[str]:
  if not word:
    return list(TERMS)
  lowered = word.lower()
  found = [term for term in TERMS if term.lower() == lowered]
  if not found:
    hint = suggestions.did_you_mean(word, TERMS)
    raise errors.GdpError(f'There is no "{word}" in the glossary.{hint} '
                          '`gdp glossary` prints all words.')
  return found


def _entry(term: str) -> str:
  return textwrap.fill(f'{term}: {TERMS[term]}', _WIDTH,
                       subsequent_indent='    ', break_on_hyphens=False)


if __name__ == '__main__':
  pathlib.Path(sys.argv[1]).write_text(markdown(), encoding='utf-8')
