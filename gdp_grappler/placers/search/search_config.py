"""The numbers of a search, one documented field each."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class AnnealingConfig:
  """Simulated annealing of the devices of groups.

  Attributes:
    batch: Moves that are priced at a time. Divisible by the usual numbers of
      cores; the same on all machines, so that results do not depend on them.
    unions: Unions of gaining moves that are tried in the next batch; 0 for
      none.
    first_temperature: Temperature at the begin, as a share of the step time of
      the best start.
    last_temperature: Temperature at the end, as such a share.
    patience: Share of the search without gain after which the search returns to
      the best placement.
    first_penalty: Cost of a memory that overflows by its own size, at the
      begin, in step times of the best start.
    last_penalty: The same cost at the end.
    success_decay: Factor by which each batch forgets which kinds of moves
      gained.
    usual_share: Share of the moves whose kind does not depend on which kinds
      gained.
    compound: Probability that one more move is added to a move: some moves gain
      only together.
    least_gain: Gain that counts as one, as a share of the best start.
    closely_from: Progress, from 0 to 1, from which a new best placement is
      priced closely (`Evaluator.price_closely`). Late gains are as small as the
      error of a price, and the best of many placements is the one with the
      largest error.
    closely_after: Placements that a search has to price before it prices
      closely.
  """

  batch: int = 16
  unions: int = 4
  first_temperature: float = 2e-2
  last_temperature: float = 2e-5
  patience: float = .08
  first_penalty: float = 10.
  last_penalty: float = 1000.
  success_decay: float = .99
  usual_share: float = .3
  compound: float = .25
  least_gain: float = 1e-9
  closely_from: float = .5
  closely_after: int = 1000


@dataclasses.dataclass(frozen=True)
class PriorityConfig:
  """Annealing while ops run in the order of priorities.

  Attributes:
    refreshes: How often priorities are computed anew in a search.
    fewest_batches: Batches between two such times, at the least.
    loss: Loss of step time that new priorities may bring, as a share.
    starts: Placements that get priorities of their own at the begin.
    several_orders: Of these, the fastest that are priced in all known orders.
  """

  refreshes: int = 12
  fewest_batches: int = 4
  loss: float = 1e-2
  starts: int = 8
  several_orders: int = 8


@dataclasses.dataclass(frozen=True)
class CoarseConfig:
  """The search of a smaller problem, whose groups are cells of the large one.

  Attributes:
    share: Share of the time of the whole search.
    least_s: Seconds below which there is no such search.
    fewest_ops: Ops of a graph below which there is none: prices are quick.
    fewest_nodes: Nodes of the small graph, at the least: fewer nodes do not
      have the order of the graph's ops.
    most_nodes: Nodes of the small graph per op, at the most: with more, a price
      costs little less.
    own_work: Work of a cell that moves by itself and not with its layer, as a
      share of an accelerator's even part, such as a piece of a large softmax.
    priced: Placements of one annealing that moves layers or parts.
    round: Share of the time of one annealing, where that is less.
    layers_until: Progress until which layers move where layers have parts.
    alone_until: Progress until which layers move where they have no parts.
    parts_until: Progress until which parts of layers move.
    parts_least: Share of the time that has to be left for parts.
    alike: Difference of two step times that counts as none, as a share.
    alike_after: Placements that an annealing has to price to find the same.
    torn: Layers do not move where the best start takes so many times as long
      with each layer on one device.
    faster: Where layers find what is faster than the starts by this factor,
      their time steps move for a brief time only.
    brief: That time, as a share.
    told: Placements that are passed on, at the most.
    far: No placement is passed on that takes so many times as long as the best.
    further: Placements of layers with which the next annealings begin.
  """

  share: float = .35
  least_s: float = 1.
  fewest_ops: int = 10_000
  fewest_nodes: int = 1500
  most_nodes: float = 1 / 3
  own_work: float = 1 / 32
  priced: int = 1500
  round: float = .35
  layers_until: float = .35
  alone_until: float = .7
  parts_until: float = .8
  parts_least: float = .1
  alike: float = 3e-4
  alike_after: int = 500
  torn: float = 1.5
  faster: float = 1.05
  brief: float = .1
  told: int = 16
  far: float = 1.1
  further: int = 4


@dataclasses.dataclass(frozen=True)
class SearchConfig:
  """A whole search.

  Attributes:
    annealing: Every annealing of the search.
    priorities: Annealing under priorities.
    coarse: The search of a smaller problem before the large one.
    start_prices: Prices that a start costs which is looked at in all orders.
    starting_share: Share of the time that is left which these starts may take.
    edge_ops: Ops that a look for control edges may simulate.
    priced_ops: Ops that a search without a time budget prices in all.
    fewest: Placements that such a search prices at the least.
    most: Placements that such a search prices at the most.
    measured: Placements that such a search prices where a step has to run.
  """

  annealing: AnnealingConfig = AnnealingConfig()
  priorities: PriorityConfig = PriorityConfig()
  coarse: CoarseConfig = CoarseConfig()
  start_prices: int = 8
  starting_share: float = .25
  edge_ops: int = 1_000_000
  priced_ops: int = 80_000_000
  fewest: int = 500
  most: int = 20_000
  measured: int = 300


DEFAULT = SearchConfig()
