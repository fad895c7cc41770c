"""The numbers of a search, one documented field each."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class AnnealingConfig:
  """Simulated annealing of the devices of groups.

  The fields that are shares of a step time refer to the step of the fastest
  start.

  Attributes:
    batch: Moves that are priced together. A multiple of common numbers of
      cores. The number is the same on all machines, so that results do not
      depend on the machine.
    first_temperature: Temperature at the start of the search, as a share of the
      step time.
    last_temperature: Temperature at the end of the search, as a share of the
      step time.
    first_penalty: Cost of a memory that overflows by its own size, at the start
      of the search, in step times.
    last_penalty: The same cost at the end of the search.
    success_decay: Factor by which each batch reduces the counts of tries and of
      gains per kind of move.
    usual_share: Share of the moves whose kind does not depend on these counts.
    prior_gain: Gains that each kind of move is credited with before the first
      move, in units of the temperature. Each kind is also credited with one
      try.
    compound: Probability that one more move is added to a move. Some moves gain
      only together.
    closely_from: Progress, from 0 to 1, from which a new best placement is
      priced closely (`Evaluator.price_closely`). Late gains are as small as the
      error of a price, and the best of many placements is the one with the
      largest error.
    closely_after: Placements that a search has to price before it prices
      closely.
  """

  batch: int = 16
  first_temperature: float = 2e-2
  last_temperature: float = 2e-5
  first_penalty: float = 10.
  last_penalty: float = 1000.
  success_decay: float = .99
  usual_share: float = .3
  prior_gain: float = .05
  compound: float = .25
  closely_from: float = .5
  closely_after: int = 1000


@dataclasses.dataclass(frozen=True)
class StartConfig:
  """The starts of a search.

  Attributes:
    share: Share of the time of `annealing_placer` for the placers of the
      starts.
    blocks: Starts that put one block of the topological order on each
      accelerator.
    large: Ops times devices above which there is one such start, because each
      start of a large graph costs much time.
  """

  share: float = .3
  blocks: int = 16
  large: int = 2_000_000


@dataclasses.dataclass(frozen=True)
class FitConfig:
  """The search for a placement that fits into the memories.

  Attributes:
    repairs: Whether placements that overflow a memory are repaired
      (`memory_repair`).
    packs: Whether memories are packed if no start of a search fits
      (`memory_packing`).
    priced_ops: Ops that one search simulates, over all placements.
    most: Placements that one search prices at the most.
    starts: Packed placements from which the search starts again if no placement
      fits.
    repaired: Number of the fastest placements, and of those with the least
      overflow, that are repaired.
  """

  repairs: bool = True
  packs: bool = True
  priced_ops: int = 20_000_000
  most: int = 4_000
  starts: int = 4
  repaired: int = 3


@dataclasses.dataclass(frozen=True)
class PriorityConfig:
  """Annealing of placements whose ops run in the order of priorities.

  Attributes:
    refreshes: Number of times that a search computes the priorities anew.
    fewest_batches: Batches between two such computations, at the least.
    loss: Loss of step time that new priorities may bring, as a share of the
      step time.
    starts: Placements that get priorities of their own at the start.
  """

  refreshes: int = 12
  fewest_batches: int = 4
  loss: float = 1e-2
  starts: int = 8


@dataclasses.dataclass(frozen=True)
class CoarseConfig:
  """The search of a smaller problem, whose groups are tiles of the large one.

  A tile is the ops of one layer in one time step. Shares of time refer to the
  time of this search, except `share`.

  Attributes:
    share: Time of this search, as a share of the whole search.
    least_s: Seconds below which this search does not run.
    fewest_ops: Ops of a graph below which this search does not run: prices of a
      small graph take little time.
    fewest_nodes: Nodes of the small graph, at the least. Fewer nodes do not
      have the order of the graph's ops.
    most_nodes: Nodes of the small graph, at the most, as a share of the graph's
      ops. With more nodes, a price takes almost as long as in the graph.
    own_work: Work of a tile from which the tile moves alone and not with its
      layer, as a share of the work per accelerator. An example is a piece of a
      large softmax.
    majority: Share of the work of a tile that decides about the tile: whether a
      device may have the tile, and whether control edges may join it.
    priced: Placements after which an annealing of layers or parts ends.
    round: Share of the time after which such an annealing ends in any case.
    layers_until: Progress until which layers move if layers have parts.
    alone_until: Progress until which layers move if layers have no parts.
    parts_until: Progress until which parts of layers move.
    parts_least: Share of the time that the stage of parts needs.
    alike: Difference of two step times that counts as none, as a share of the
      step time.
    alike_after: Placements that an annealing has to price before its result
      counts as equal to another result.
    torn: Layers do not move if the best start takes at least `torn` times as
      long once each layer is on one device.
    faster: Tiles move for a brief time only if the best placement of layers is
      faster than the starts by this factor.
    brief: That brief time, as a share of the time.
    passed_on: Placements that the search of the graph gets, at the most.
    slowest: Step time of a placement that the search of the graph gets, at the
      most, in step times of the best placement.
    further: Best placements of the stages before with which a stage begins.
  """

  share: float = .35
  least_s: float = 1.
  fewest_ops: int = 10_000
  fewest_nodes: int = 1500
  most_nodes: float = 1 / 3
  own_work: float = 1 / 32
  majority: float = .5
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
  passed_on: int = 16
  slowest: float = 1.1
  further: int = 4


@dataclasses.dataclass(frozen=True)
class TimeConfig:
  """How the default placer divides its time.

  Attributes:
    budget_s: Seconds of a problem without a time budget.
    steps: Steps of the program whose possible gain limits the time of a search.
    ops_per_s: Ops that are priced per second where no clock counts. Two idle
      cores price more.
    drawn_ops: Time of drawing the moves among which one is chosen, as a number
      of ops that are priced in the same time.
    grace: Share of the time in which the clock does not end a search that has
      to be repeatable. The result then depends on the clock on slow machines
      only.
    waited_for: Share of the affordable placements that is priced if a program
      waits.
    anchors: Share of the time for anchors, without list schedulers.
    lists: Share of the time for list schedulers, which come afterwards.
    lists_of_large: The same for large graphs, on which list schedulers would
      use up any time.
    lists_least_s: Least seconds for list schedulers. If the time is short, they
      find better placements than a search does.
    lists_most: Largest share of the remaining time for list schedulers.
    lists_all_s: Seconds that are enough for all list schedulers. With less
      time, the one that is best on most graphs runs first.
    large: Groups times devices above which a graph is large.
    moves: Share of the search's time that the policy of moves may take.
    moves_with_coarse: The same if a coarse graph is searched as well.
    moves_by_count: The same if the number of prices ends the search, and not
      the clock.
    moves_if_short: The same if the time is short. The policy makes few prices,
      and then finds better placements than other anchors or a search.
    moves_short: Time that is short, as a multiple of the seconds that a search
      must be worth for the policy of moves to take part.
    moves_least_s: Seconds that a search must be worth for the policy of moves
      to take part, in addition to `moves_op_s` per op. A shorter search would
      end before the policy does.
    moves_op_s: Seconds per op that a search must be worth for this policy.
    moves_begun: Share of the sum of these seconds that the policy of moves must
      have for itself if the clock ends the search. With less time on a large
      graph, it would make only a few prices.
    named_policy_s: Seconds that a search must be worth for the policy of one
      forward pass, if the user named the policy or it is loaded. Loading and
      the first run take about this time.
    policy_s: The same if no policy was named. Loading then takes only a small
      part of the search.
  """

  budget_s: float = 10.
  steps: int = 10_000
  ops_per_s: int = 4_000_000
  drawn_ops: int = 1_500
  grace: float = .5
  waited_for: float = .5
  anchors: float = .35
  lists: float = .15
  lists_of_large: float = .1
  lists_least_s: float = .5
  lists_most: float = .5
  lists_all_s: float = 1.
  large: int = 200_000
  moves: float = .25
  moves_with_coarse: float = .1
  moves_by_count: float = .5
  moves_if_short: float = .6
  moves_short: float = 4.
  moves_least_s: float = .1
  moves_op_s: float = 1e-4
  moves_begun: float = .5
  named_policy_s: float = 3.
  policy_s: float = 60.

  def lists_s(self, budget_s: float, left_s: float, large: bool) -> float:
    """Seconds for list schedulers.

    Args:
      budget_s: Seconds of all placers together.
      left_s: Seconds that are left.
      large: Whether the graph is large.
    """
    if large:
      wanted_s = self.lists_of_large * budget_s
    else:
      wanted_s = max(self.lists * budget_s, self.lists_least_s)
    return min(wanted_s, self.lists_most * left_s)


@dataclasses.dataclass(frozen=True)
class EdgeConfig:
  """The choice among placements by their control edges (`edge_selection`).

  Attributes:
    promised: Placements, the best first in, first out, whose gain from an order
      is predicted.
    ordered: Number of these, those with the largest gain, for which control
      edges are computed.
    cost: Cost of simulating a step for control edges, in prices of one
      placement: a price simulates several steps.
    most_steps: Steps that one computation of control edges simulates, at the
      most, even if the graph is small.
  """

  promised: int = 4
  ordered: int = 2
  cost: float = 1 / 3
  most_steps: int = 200


@dataclasses.dataclass(frozen=True)
class SearchConfig:
  """A whole search.

  Attributes:
    annealing: Every annealing of the search.
    start: The starts of the search.
    fit: The search for a placement that fits.
    priorities: Annealing under priorities.
    coarse: The search of a smaller problem before the large one.
    edges: The choice among placements by their control edges.
    time: How the default placer divides its time.
    start_prices: Cost of a start that gets priorities, in prices of one
      placement.
    starting_share: Share of the time that is left which these starts may take.
    edge_ops: Ops that the computation of control edges may simulate.
    priced_ops: Ops that a search without a time budget simulates, over all
      placements.
    fewest: Placements that such a search prices at the least.
    most: Placements that such a search prices at the most.
    measured: Placements that such a search prices if a price is a real step.
  """

  annealing: AnnealingConfig = AnnealingConfig()
  start: StartConfig = StartConfig()
  fit: FitConfig = FitConfig()
  priorities: PriorityConfig = PriorityConfig()
  coarse: CoarseConfig = CoarseConfig()
  edges: EdgeConfig = EdgeConfig()
  time: TimeConfig = TimeConfig()
  start_prices: int = 8
  starting_share: float = .25
  edge_ops: int = 1_000_000
  priced_ops: int = 80_000_000
  fewest: int = 500
  most: int = 20_000
  measured: int = 300


DEFAULT = SearchConfig()
