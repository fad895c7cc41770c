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
        'Of `gdp_pretrain`: how likely a move that gains has a higher '
        'score than one that does not; 0.5 is luck.',
    'bandwidth':
        'Bytes per second: of a device, between it and its memory; of a '
        'link, between devices.',
    'baseline':
        'A placement that others are compared with: one device, METIS, '
        'random.',
    'bound':
        'A time that no placement can beat: the critical path with '
        'transfers for nothing, or all work divided evenly over all '
        'devices, whichever is longer.',
    'calibration':
        'What `gdp calibrate` measured of a card: what the host takes for '
        'an op, hops, and kernels of each family by size.',
    'cell':
        'One placer on one task of `gdp_bench`; of a graph that repeats '
        'itself: one layer in one time step.',
    'channel':
        'A wire, copy engine or network card that carries one transfer '
        'at a time.',
    'cluster':
        'Devices and the links between them: a preset such as 2xP100, a '
        'file, this machine, or servers.',
    'co-location':
        'A rule of TensorFlow that ties ops to one device, such as a '
        'variable and what reads it.',
    'compute unit':
        'Devices cut from one processor, which take turns on it.',
    'control edge':
        'An edge that carries nothing: one op starts after another has '
        'ended.',
    'copy engine':
        'What a GPU has beside its compute unit to send or receive while '
        'it computes.',
    'critical chain':
        'What the end of a simulated step waits for, op by op and '
        'transfer by transfer, backwards to its beginning.',
    'critical path':
        'The longest path through the graph; the order of that name '
        'starts the op first that most is left behind.',
    'cut':
        'Tensors whose producer and consumer are on different devices, '
        'and their bytes. Each is sent once to each other device.',
    'device':
        'A GPU, or the CPU of a host, as TensorFlow names it: GPU:0.',
    'dispatch':
        'Handing an op over to a device. A GPU works it off later, so '
        'that dispatch runs ahead of it.',
    'emulated':
        "Run by TensorFlow's own runtime over GPUs that only pretend to "
        'compute: order, overlap and waiting are real, seconds are not.',
    'evaluation':
        'Pricing one placement, or running it.',
    'expert':
        'The placement that a human would choose: whole layers to '
        'devices.',
    'family':
        'Ops of one kind, such as matmul or convolution, which reach '
        "the same share of a device's peak.",
    'FIFO':
        'First in, first out: the order in which TensorFlow starts ops '
        'that are ready. A step is FIFO unless said otherwise.',
    'fits':
        'No memory is exceeded. What does not fit is also called OOM, '
        'out of memory.',
    'GDP':
        'The paper this follows: a policy that learns on many graphs, '
        'and here also the default placer, `gdp`, which refines what '
        'cheap placers and the policy propose.',
    'graph':
        'What TensorFlow runs for a step: ops, and the tensors that go from '
        'one to the other.',
    'group':
        'Ops that TensorFlow wants on one device; what a placement '
        'decides.',
    'guard':
        'Times the first steps of a `fit` as they were and placed, and '
        'keeps the faster way.',
    'HDP':
        'An earlier paper, whose planner learns each graph anew.',
    'held out':
        'Never learned from, so that it tells how well what was learned '
        'carries over.',
    'human':
        'See expert.',
    'imitation':
        'Learning to say placements that were found otherwise.',
    'iteration':
        'Of `gdp_train`: some placements are sampled, priced and '
        'learned from.',
    'kernel':
        'The code that runs an op on a type of device. Without one the '
        'op cannot be there.',
    'lane':
        'A process of `gdp_bench` in which cells run one after the '
        'other.',
    'latency':
        'What a transfer or message takes however small it is.',
    'launch':
        'What a device needs to begin an op, however small that is.',
    'layer':
        'A part of a model, as its user named it: a name scope that uses '
        'variables. Of a table: with its gradients and updates.',
    'link':
        'The way from one device to another, with its latency and '
        'bandwidth.',
    'MAPE':
        'Mean absolute percentage error, of simulated against measured '
        'or emulated steps.',
    'measured':
        'Really run and timed.',
    'message':
        'What is sent where a control edge or an empty tensor crosses '
        'devices: latency, no bytes.',
    'METIS':
        'A library that cuts graphs into even parts; the placer `metis` '
        'gives each device one.',
    'move':
        'Of a search: some groups go to other devices.',
    'OOM':
        'Out of memory: a placement exceeds a memory.',
    'op':
        'One operation of a graph, such as a MatMul.',
    'ordered':
        'With the control edges that keep a better order than first in, '
        'first out; they change no number.',
    'parameters':
        "Variables of a layer, without the optimizer's slots.",
    'peak memory':
        'The most that a memory holds at any time of a step.',
    'pin':
        'Says that an op stays on a device: of yours, or because what '
        'it does is tied to the host.',
    'placement':
        'A device for each op of a graph.',
    'placer':
        'Whatever turns a graph into devices: an algorithm, a search or '
        'a policy.',
    'plan':
        'A file that says which op of a graph goes where.',
    'policy':
        'The learned network, as a folder that `gdp_train` writes.',
    'pool':
        'A memory, of one device or of several.',
    'portfolio':
        'A placer that proposes several placements; the best by price '
        'wins.',
    'preset':
        'A cluster by name, such as 2xP100.',
    'price':
        'What a placement is said to take: its step and what overflows.',
    'priority':
        'Says which of the ops that are ready is to start first; '
        'control edges enforce it.',
    'profile':
        'What ops of a graph took when they were run, for use in place '
        'of the roofline.',
    'rate':
        'FLOPs per second of a device.',
    'reached':
        'Share of the peak rate of a device that ops get.',
    'reward':
        'What a policy is taught by: shorter steps are worth more.',
    'robust price':
        'What searches minimise: the simulated step, times by how much '
        'it is longer when seconds and bytes are a little off.',
    'rollout':
        'A placement sampled from a policy.',
    'roofline':
        'The time of an op if it is limited by arithmetic or by memory '
        'bandwidth alone, whichever takes longer.',
    'simulated':
        "Computed, event by event, by the rules of TensorFlow's "
        'executor; nothing was run.',
    'slot':
        'One of the ops that a compute unit runs at a time.',
    'Spearman':
        'Rank correlation: 1 if the simulator sorts placements as '
        'measured steps do.',
    'speed-up':
        'Another step time / ours; over one device unless said '
        'otherwise.',
    'stage':
        'The part of a workload that an expert places as a whole.',
    'step':
        'One run of a graph, such as of the training of one batch.',
    'task':
        'Of `gdp_bench`: a graph on a cluster. Of a cluster: one of its '
        'servers.',
    'tensor':
        'What an op hands to others: numbers, and how many bytes they take.',
    'transfer':
        'A tensor on its way from one device to another.',
    'trip count':
        'How often a while loop runs.',
    'unit':
        'Groups joined along their largest tensors; what the policy '
        'decides: about a sixteenth as many as groups, or about 256.',
    'valid':
        'A placement that runs: it fits, and every op has a kernel '
        'where it is.',
    'variable':
        'A tensor that outlives the step, such as weights; ops that use it '
        'are where it is.',
    'waiting':
        'The part of a step in which a device neither computes nor '
        'copies.',
    'warm-up':
        'What `gdp_train` does before it samples: it prices the '
        'baselines, searches, and has the policy imitate what was '
        'found.',
    'workload':
        "A training graph of the papers, built by this project's own "
        'code.',
    'workspace':
        'Memory that an op needs while it runs, beside its inputs and '
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
