"""The words that tables, pages and messages use, for `gdp glossary`.

`python -m gdp_grappler.reports.glossary docs/glossary.md` writes the page.
"""

from __future__ import annotations

import pathlib
import sys
import textwrap

from gdp_grappler import errors
from gdp_grappler import suggestions

_WIDTH = 79  # Columns of a printed term.

TERMS = {
    'annealing':
        'Simulated annealing: a search that makes random moves. At first it '
        'accepts many moves that make the step longer, later hardly any: it '
        'cools.',
    'AUC':
        'Of `gdp_pretrain`: the probability that a move that gains has a '
        'higher score than a move that does not; 0.5 is chance.',
    'bandwidth':
        'Bytes per second, of a memory or of a link.',
    'baseline':
        'A placement to compare with: one device, METIS, random.',
    'bound':
        'A step time that no placement can beat: the longest path without '
        'transfers, or all work divided evenly over all devices, whichever is '
        'longer.',
    'calibration':
        'What `gdp calibrate` measured of a card: launches, small transfers, '
        'kernels by size.',
    'card':
        'A GPU as hardware. It is one device, or several logical GPUs.',
    'cell':
        'In `gdp_bench`: one placer on one task.',
    'channel':
        'A wire, copy engine or network card that carries one transfer at a '
        'time.',
    'cluster':
        'Devices and the links between them: a preset such as 2xP100, a file, '
        'this machine, or servers.',
    'co-location':
        'A rule of TensorFlow that some ops share a device, such as a '
        'variable and its readers.',
    'coarse graph':
        'A small graph made of tiles. The search of a large graph begins with '
        'it.',
    'control edge':
        'An edge without data: one op starts after another has ended.',
    'coordinates':
        'Where an op is in a repeated structure: its layer, time step, '
        'variable and branch.',
    'copy engine':
        'The part of a GPU that sends or receives while the GPU computes.',
    'critical chain':
        'The ops and transfers that a simulated step waited for, from its end '
        'back to its beginning.',
    'critical path':
        'The longest path through a graph. As an order: the op from which the '
        'longest path leads to the end of the step starts first.',
    'cut':
        'Tensors that an op on one device makes and an op on another one uses, '
        'and their bytes. Tensors that stay in the memory of the host count, '
        'too, although nothing is copied.',
    'device':
        'A GPU, or the CPU of a host, such as GPU:0 or CPU:0.',
    'dispatch':
        "The host's work to hand an op to a device. A GPU runs the op later.",
    'emulated':
        "Run by TensorFlow's own runtime over GPUs that only pretend to "
        'compute. Order and waiting are real, seconds of ops are not.',
    'evaluation':
        'Pricing one placement, or running it.',
    'expert':
        'The placement that a human would choose: whole layers on devices.',
    'family':
        'Ops of one kind, such as convolutions, which reach the same share of '
        "a device's peak rate.",
    'favourite child':
        'In m-SCT: the consumer of an op that runs next on the same device, '
        'so that it needs no transfer.',
    'FIFO':
        "First in, first out: TensorFlow's order of ready ops, without control "
        'edges of ours. Steps are FIFO unless a table says otherwise.',
    'fits':
        'Of a placement: no memory is exceeded.',
    'gap':
        'Of the critical chain: a time in which nothing of the chain runs, '
        'such as the launch of a kernel or the latency of a copy.',
    'GDP':
        'The paper behind this project. Its network learns on many graphs. '
        '`gdp` is the default placer, a search.',
    'graph':
        'What TensorFlow runs for a step: ops, and tensors between them.',
    'group':
        'Ops that must share a device.',
    'guard':
        'Times the first steps of `fit`, without placement and placed, and '
        'keeps the faster way.',
    'HDP':
        'An earlier paper. Its network learns each graph anew.',
    'held out':
        'Not used for learning. Results on held-out graphs show how well a '
        'network generalizes.',
    'host':
        'A machine with a CPU, memory and perhaps GPUs.',
    'human':
        'See expert.',
    'imitation':
        'Learning to repeat placements that another method found.',
    'iteration':
        'A round of `gdp_train`: placements are sampled, priced and learned '
        'from.',
    'kernel':
        'The code that runs an op on a type of device. Without a kernel for '
        'its type, a device cannot run the op.',
    'latency':
        'The time of a transfer that does not depend on its bytes.',
    'launch':
        'The fixed time that a device needs to begin an op.',
    'layer':
        'A part of a model with variables, as its name scope says. Its '
        'gradients and updates belong to it.',
    'layer map':
        "Devices by layer, such as {'encoder': 'GPU:0'}. It can be used as a "
        'plan.',
    'legal device':
        "Of an op: a device that TensorFlow's rules, the user's pins and "
        '(without the option `may_round`) rounding allow.',
    'link':
        'The connection of two devices, with a latency and a bandwidth.',
    'list scheduler':
        'A placer that places one op after the other by a rule, such as '
        'm-ETF.',
    'logical GPU':
        'A part of a card that TensorFlow uses like a GPU, with its own '
        'stream and memory.',
    'luck':
        'Of a placement: the factor by which random errors lengthen its step, '
        'divided by the same factor of a step on one device; at least 1.',
    'MAPE':
        'Mean absolute percentage error of simulated steps against measured '
        'or emulated ones.',
    'measured':
        'Run and timed.',
    'message':
        'A transfer without bytes, for a control edge or an empty tensor.',
    'METIS':
        'A library that divides a graph into equal parts. The placer `metis` '
        'gives each device one part.',
    'move':
        'A change of a placement: some groups go to other devices.',
    'move network':
        'A small network that predicts which moves make a placement faster.',
    'network':
        'A neural network: the move network or the policy. In the name of a '
        'cluster: what connects the hosts, such as eth10.',
    'OOM':
        'Out of memory: a placement exceeds a memory.',
    'op':
        'One operation of a graph, such as a MatMul.',
    'ordered':
        'Of a step: with control edges that let less urgent ops wait. The '
        'edges change no number.',
    'parameters':
        "Variables of a layer, without the optimizer's slots.",
    'peak memory':
        'The largest use of a memory during a step.',
    'pin':
        'A rule that an op stays on one device: `gdp_grappler.pin` or '
        '`tf.device` says so, or the op is tied to the host.',
    'placement':
        'A device for each op of a graph.',
    'placer':
        'An algorithm that makes placements.',
    'plan':
        'A file with a device for each op of one graph.',
    'policy':
        "GDP's network, which gives the probability of each device for every "
        'op. In names it is wider: `--policy`, the key `policy` and the folder '
        '`policy/` stand for any network that `gdp_train` or `gdp_pretrain` '
        'wrote, and the placer `gdp_policy` uses the move network.',
    'portfolio':
        'A placer that makes several placements, and returns the one with the '
        'best price.',
    'preset':
        'A cluster by name, such as 2xP100.',
    'price':
        'The predicted step time of a placement, and the bytes that exceed a '
        'memory.',
    'priority':
        'A number that says which ready op should start first. A search prices '
        'placements by priorities. In a program control edges enforce them: '
        'the step is then ordered (older tables: "in order").',
    'profile':
        'Measured seconds of the ops of one graph. They replace the roofline.',
    'rate':
        'FLOPs per second of a device.',
    'reached':
        "The share of a device's peak rate that ops get.",
    'retimed step':
        'An estimate of the step after a move, by one sweep over the ops.',
    'reward':
        'The number that learning increases. A shorter step has a larger '
        'reward.',
    'robust price':
        'A price that searches use: the simulated step times the luck of the '
        'placement.',
    'rollout':
        'A placement sampled from the policy.',
    'roofline':
        'Seconds of an op, computed from its FLOPs and bytes: arithmetic or '
        'memory, whichever takes longer.',
    'simulated':
        "Computed by the rules of TensorFlow's executor. Nothing was run.",
    'slot':
        'Of an optimizer: a variable that it keeps for each weight, such as '
        "Adam's moments. Of a processor: room for one running op.",
    'Spearman':
        'Rank correlation: 1 if the simulator ranks placements as measured '
        'steps do.',
    'speed-up':
        'The step time of one device (or of what a table names), divided by '
        'the step time of the placement.',
    'stage':
        'A part of a workload that the expert places as a whole.',
    'start':
        'A placement with which a search begins.',
    'step':
        'One run of a graph, such as the training of one batch.',
    'table':
        'The weight of an Embedding or Dense layer, which may be made in '
        'parts.',
    'task':
        'In `gdp_bench`: a graph on a cluster. In a TensorFlow cluster: one '
        'of its servers.',
    'tensor':
        'Numbers that one op hands to other ops.',
    'tile':
        'The ops of one layer in one time step.',
    'transfer':
        'A tensor on its way from one device to another.',
    'trip count':
        'The number of iterations of a while loop.',
    'unit':
        'Groups that exchange large tensors. The policy decides per unit.',
    'valid':
        'Of a placement: it breaks no rule of the graph, and it fits.',
    'variable':
        'A tensor that outlives the step, such as a weight. Ops that use it '
        'are on its device.',
    'waiting':
        'The part of a step in which a device neither computes nor copies.',
    'warm-up':
        'The part of `gdp_train` before sampling: baselines, searches, and '
        'imitation of what they found.',
    'workload':
        "A training graph of the papers, built by this project's own code.",
    'workspace':
        'Memory that an op needs while it runs, besides inputs and outputs.',
}


def text(word: str = '') -> str:
  """Returns definitions for a terminal, in lines of at most 79 columns.

  Args:
    word: A term, in any case. '' means all terms.

  Raises:
    GdpError: the glossary has no such term.
  """
  return '\n'.join(_entry(term) for term in _terms(word))


def markdown() -> str:
  """Returns all definitions as a page of Markdown."""
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
