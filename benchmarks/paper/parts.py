"""Tables and figures of the papers: tasks, placers, and what is compared.

GDP is Zhou et al. 2019 (ICLR 2020 submission), HDP Mirhoseini et al. 2018, SGDP
Zhou et al. 2020 (IEEE Micro).
"""

from __future__ import annotations

import dataclasses

from placer_model.benchmark import published

STEP, SEARCH = 'step', 'search'
_SIX = ('rnnlm-2@2xP100', 'gnmt-2@2xP100', 'transformer-xl-2@2xP100',
        'inception-v3-b32@2xP100', 'amoebanet@4xP100', 'wavenet-2x18@2xP100')
_EIGHT = ('rnnlm-8@8xP100', 'gnmt-8@8xP100', 'transformer-xl-8@8xP100')
_ONE, _BATCH, _TUNED = 'gdp_paper', 'gdp_batch', 'gdp_fine_tuned'
_HUMAN, _HDP, _OURS = 'human_expert', 'hdp', 'gdp'
_HELD_OUT = ('The policy that ships has seen drawn graphs alone, so for all of '
             'these it is held out.')


@dataclasses.dataclass(frozen=True)
class Ratio:
  """A column: another placer's figure over that of the one in question.

  Attributes:
    title: Of the column.
    other: Whose figure is above.
    ours: Whose is below.
    figure: `STEP` or `SEARCH`: seconds of a step, or of the search until the
      best placement.
    published: The same in a paper, by task.
  """

  title: str
  other: str
  ours: str
  figure: str = STEP
  published: tuple[tuple[str, float], ...] = ()


@dataclasses.dataclass(frozen=True)
class Part:
  """A table or figure.

  Attributes:
    title: What it is.
    tasks: 'GRAPH@CLUSTER' each.
    placers: As columns, in their order.
    ratios: Further columns.
    said: What the paper says of it, in our words; '' if nothing.
    curve: Whether all is run again for every number of seconds.
    limited: Whether searches have so many seconds; if not, they end by
      themselves.
  """

  title: str
  tasks: tuple[str, ...]
  placers: tuple[str, ...]
  ratios: tuple[Ratio, ...] = ()
  said: str = ''
  curve: bool = False
  limited: bool = True


def _of_go(column: int, below: int = 0) -> tuple[tuple[str, float], ...]:
  """A ratio of two columns of `published.GO`, by task."""
  return tuple((task, above / under) for task, row in published.GO.items()
               if isinstance(above := row[column], float) and
               isinstance(under := row[below], float))


def _of_hdp(column: int) -> tuple[tuple[str, float], ...]:
  """A column of `published.HDP` over HDP's own, by task."""
  return tuple((task, above / row[-1]) for task, row in published.HDP.items()
               if isinstance(above := row[column], float))


PARTS = {
    'table1':
        Part(
            "GDP's table 1: GDP-one, human, METIS and HDP", tuple(published.GO),
            (_HUMAN, 'metis', _HDP, _ONE, _OURS),
            (Ratio('human / GDP-one', _HUMAN, _ONE, STEP, _of_go(1)),
             Ratio('HDP / GDP-one', _HDP, _ONE, STEP, _of_go(3)),
             Ratio('search: HDP / GDP-one', _HDP, _ONE, SEARCH,
                   tuple((task, row[4]) for task, row in published.GO.items())),
             Ratio('human / gdp', _HUMAN, _OURS), Ratio('HDP / gdp', _HDP,
                                                        _OURS)),
            'Published figures are of GO (NeurIPS 2020), by the same authors: '
            "the body of GDP's own table is lost in what survives of it."),
    'table2':
        Part(
            "GDP's table 2: GDP-batch and GDP-one", tuple(published.GO),
            (_ONE, _BATCH), (Ratio('GDP-one / GDP-batch', _ONE, _BATCH),),
            'GDP-batch is said to be faster by 7.6 % on Transformer-XL, 15 % '
            'on WaveNet and 8 % on GNMT-8, a little slower on AmoebaNet. Here '
            'the batch is the graph and six small ones. Of each there are as '
            'many iterations as GDP-one has of one, however long they take.',
            limited=False),
    'figure2':
        Part(
            "GDP's figure 2: graphs that were held out", _SIX,
            (_HUMAN, _HDP, 'gdp_one_shot', _TUNED, _ONE),
            (Ratio('human / zero-shot', _HUMAN,
                   'gdp_one_shot'), Ratio('human / fine-tuned', _HUMAN, _TUNED),
             Ratio('HDP / fine-tuned', _HDP, _TUNED),
             Ratio('zero-shot / fine-tuned', 'gdp_one_shot', _TUNED)),
            'Fine-tuned, fewer than 50 steps in less than a minute, GDP is '
            'said to beat both human and HDP on all six and to be a little '
            f'slower than GDP-one. {_HELD_OUT}'),
    'figure3':
        Part(
            "GDP's figure 3: without attention, without superposition", _SIX,
            (_ONE, 'gdp_paper_no_attention', 'gdp_paper_no_superposition',
             'gdp_paper_no_graphsage'),
            (Ratio('no attention / GDP-one', 'gdp_paper_no_attention', _ONE),
             Ratio('no superposition / GDP-one', 'gdp_paper_no_superposition',
                   _ONE),
             Ratio('no GraphSAGE / GDP-one', 'gdp_paper_no_graphsage', _ONE)),
            'Without attention steps are said to be 18 % longer, without '
            'superposition 6.5 %; GraphSAGE was not switched off.'),
    'figure4':
        Part(
            "GDP's figure 4: learned before, then fine-tuned", _SIX,
            (_ONE, _TUNED),
            (Ratio('step: GDP-one / fine-tuned', _ONE, _TUNED),
             Ratio('search: GDP-one / fine-tuned', _ONE, _TUNED, SEARCH)),
            'Steps are said to be 5 % shorter and the search 86 % (7.1x), '
            f'with the graph among those learned before. {_HELD_OUT}'),
    'hdp':
        Part("HDP's table 1", tuple(published.HDP),
             ('gpu_only', _HUMAN, 'scotch', 'min_cut', _HDP, _OURS),
             (Ratio('human / HDP', _HUMAN, _HDP, STEP, _of_hdp(1)),
              Ratio('Scotch / HDP', 'scotch', _HDP, STEP, _of_hdp(2)),
              Ratio('MinCut / HDP', 'min_cut', _HDP, STEP,
                    _of_hdp(3)), Ratio('HDP / gdp', _HDP, _OURS))),
    'eight':
        Part(
            "SGDP's comparison on eight GPUs", _EIGHT,
            (_HUMAN, 'metis', _HDP, _ONE, _OURS),
            (Ratio('human / GDP-one', _HUMAN, _ONE, STEP, _of_go(1)),
             Ratio('HDP / GDP-one', _HDP, _ONE, STEP,
                   _of_go(3)), Ratio('human / gdp', _HUMAN,
                                     _OURS), Ratio('HDP / gdp', _HDP, _OURS)),
            'SGDP is said to be 20 % faster than the human expert and 18 % '
            'than HDP over its tasks.'),
    'seconds':
        Part('Equal seconds', tuple(published.GO),
             (_HUMAN, _HDP, 'best_of', 'local_search', _OURS), curve=True),
}
