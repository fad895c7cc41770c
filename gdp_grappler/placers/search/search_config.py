"""The numbers of a search, one documented field each."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class AnnealingConfig:
  """Simulated annealing of the devices of groups.

  The fields that are shares of a step time refer to the step of the fastest
  start.

  Attributes:
    batch: Moves that are priced together, in parallel. The number is a multiple
      of common numbers of cores. It is the same on all machines, so that
      results do not depend on the machine.
    first_temperature: Temperature at the start of the search, as a share of the
      step time.
    last_temperature: Temperature at the end of the search, as a share of the
      step time.
    first_penalty: Penalty of a memory that overflows by its own size, at the
      start of the search, in step times.
    last_penalty: The same penalty at the end of the search.
    success_decay: The search counts the tries and the gains of each kind of
      move, and draws successful kinds more often. Each batch multiplies the
      counts by this factor, so that recent moves count more.
    usual_share: Share of the moves whose kind does not depend on these counts.
    prior_gain: Gain of each kind of move that is counted before the first move,
      in units of the temperature, with one try.
    compound: Probability that one more move is added to a move. Some moves gain
      only together.
    draws: Moves that are drawn for each move that is priced, at least 1, if a
      network chooses the moves to price.
    unfiltered: Share of the priced moves that are chosen without the network,
      even if there is one. So the search also finds gains that the network does
      not predict.
    closely_from: Progress, from 0 to 1, from which a new best placement gets a
      close price (`Evaluator.price_closely`). Late gains are as small as the
      error of a price, so a new best placement may be best only by its error.
    closely_after: Number of placements that an annealing prices before the
      first close price.
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
  draws: int = 12
  unfiltered: float = .25
  closely_from: float = .5
  closely_after: int = 1000


@dataclasses.dataclass(frozen=True)
class StartConfig:
  """The starts of a search.

  Attributes:
    share: Share of the time of `annealing_placer` for the placers of the
      starts.
    blocks: Number of starts with one block of the topological order on each
      accelerator.
    large: Ops times devices above which there is only one such start, because
      the price of a large graph takes long.
    best: Number of the best placements of other placers with which a search
      begins.
  """

  share: float = .3
  blocks: int = 16
  large: int = 2_000_000
  best: int = 8


@dataclasses.dataclass(frozen=True)
class FitConfig:
  """The search for a placement that fits into the memories.

  Attributes:
    repairs: Whether placements that overflow a memory are repaired
      (`memory_repair`).
    packs: Whether groups are packed into the memories if no start of a search
      fits (`memory_packing`).
    priced_ops: Ops that one annealing simulates, over all placements.
    most: Largest number of placements that one annealing prices.
    starts: Number of packed placements from which further annealings start if
      no placement fits.
    repaired: Number of the fastest placements that are repaired, and of those
      with the least overflow.
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
    refreshes: Largest number of times that the annealing computes new
      priorities.
    fewest_batches: Least number of batches between two such computations.
    loss: Largest increase of the step time by new priorities, as a share of the
      step time. With a larger increase the old priorities stay.
    starts: Number of starts. Each one has priorities of its own.
    different: Two starts differ in at least this share of the groups
      (`PricedPlacements.varied`).
  """

  refreshes: int = 12
  fewest_batches: int = 4
  loss: float = 1e-2
  starts: int = 16
  different: float = .2


@dataclasses.dataclass(frozen=True)
class ShortConfig:
  """Short FIFO annealings before the long one (`staged_search`).

  Attributes:
    starts: Largest number of short annealings. Each has a start of its own.
    fewest: Least number of placements that each short annealing should price.
      If the time is too short for that, there are fewer short annealings.
    different: Two starts differ in at least this share of the groups
      (`PricedPlacements.varied_sources`).
  """

  starts: int = 4
  fewest: int = 50
  different: float = .05


@dataclasses.dataclass(frozen=True)
class CoarseConfig:
  """The search of a smaller problem, whose groups are tiles of the large one.

  A tile is the ops of one layer in one time step. The levels of this search
  move layers, then parts of recurrent layers, then tiles (`multilevel`). All
  fields but `share` that are shares of time, or progress from 0 to 1, refer to
  the time of this search.

  Attributes:
    share: Time of this search, as a share of the whole search.
    least_s: Least seconds of this search. It does not run in a shorter time.
    fewest_ops: Least number of ops. The prices of a smaller graph take little
      time, so this search does not run.
    fewest_nodes: Least number of nodes of the small graph. The order of fewer
      nodes says too little about the order of the ops.
    most_nodes: Largest number of nodes of the small graph, as a share of the
      graph's ops. With more nodes, a price takes almost as long as in the
      graph.
    own_work: Least work of a tile that moves alone and not with its layer, as a
      share of the work per accelerator. An example is a piece of a large
      softmax.
    majority: Share of a tile's work that counts as most of it. A device is
      legal for a tile if it is legal for this share. Control edges may join a
      tile if they may join ops with this share.
    round: Share of the time after which one annealing of the coarse graph ends.
    layers_until: Progress at which the level of layers ends, if layers have
      parts.
    parts_until: Progress at which the level of parts ends, or the level of
      layers if layers have no parts. Parts move only if this field exceeds
      `layers_until`.
    most_slowdown: Layers and parts move only if the best start becomes slower
      by less than this factor when each of its layers is put on one device.
    passed_on: Largest number of placements that the search of the graph gets.
    slowest: Longest step of a placement that the search of the graph gets, in
      steps of the best placement.
    further: Number of the best placements of the earlier levels that are starts
      of a level.
  """

  share: float = .35
  least_s: float = 1.
  fewest_ops: int = 10_000
  fewest_nodes: int = 1500
  most_nodes: float = 1 / 3
  own_work: float = 1 / 32
  majority: float = .5
  round: float = .35
  layers_until: float = .35
  parts_until: float = .8
  most_slowdown: float = 1.5
  passed_on: int = 16
  slowest: float = 1.1
  further: int = 4


@dataclasses.dataclass(frozen=True)
class TimeConfig:
  """How the default placer divides its time.

  Attributes:
    budget_s: Seconds of a problem without a time budget.
    steps: Number of steps of the program. A search is *worth* at most the
      seconds that it could save in this number of steps.
    ops_per_s: Number of ops that stands for one second of pricing if the number
      of prices ends a search. Two idle cores price more ops in a second.
    drawn_ops: Time to draw all moves for one price, as a number of ops that
      could be priced in this time.
    grace: Share of the time, at its start, in which the clock does not end a
      repeatable search. So the result depends on the clock only on slow
      machines.
    waited_for: Share of the affordable placements that a repeatable search
      prices, because a program waits for the search.
    anchors: Share of the time for the anchors (placers of starts,
      `default_placer.ANCHORS`) that run before `gdp_policy`, and share of the
      remaining time for the other anchors. If the time is too short for
      `gdp_policy`, the other anchors may use all of the remaining time.
    anchors_needed: Time that the anchors after `gdp_policy` need, as a share of
      the seconds that `gdp_policy` needs. With less time none of them runs,
      unless a fast placement exceeds a memory.
    moves: Share of the search's time that `gdp_policy` may take.
    moves_with_coarse: The same share if a coarse graph is searched, too.
    moves_by_count: The same share if the number of prices, and not the clock,
      ends the search.
    moves_most: Largest share of the search's time that `gdp_policy` may take if
      these shares are not enough for it.
    moves_least_s: `gdp_policy` needs these seconds, plus `moves_op_s` per op,
      to price most of its placements.
    moves_op_s: Seconds per op, see `moves_least_s`.
    moves_enough: `gdp_policy` may take at least this share of the seconds that
      it needs, as far as `moves_most` allows.
    moves_begun: Least time of `gdp_policy`, as a share of the seconds that it
      needs. In less time it does not take part, because it would price too few
      placements. If a number of prices ends the search, this field has no
      effect. `gdp_policy` then takes part if the search is worth at least the
      seconds that `gdp_policy` needs.
    named_policy_s: Least seconds that a search must be worth for the policy to
      take part, if the user named the policy or if it is loaded. Loading and
      the first run take about this time.
    policy_s: The same seconds if the user named no policy. Loading then takes
      only a small part of the search.
  """

  budget_s: float = 10.
  steps: int = 10_000
  ops_per_s: int = 4_000_000
  drawn_ops: int = 1_500
  grace: float = .5
  waited_for: float = .5
  anchors: float = .35
  anchors_needed: float = .35
  moves: float = .15
  moves_with_coarse: float = .1
  moves_by_count: float = .5
  moves_most: float = .6
  moves_least_s: float = .1
  moves_op_s: float = 1e-4
  moves_enough: float = .6
  moves_begun: float = .15
  named_policy_s: float = 3.
  policy_s: float = 60.


@dataclasses.dataclass(frozen=True)
class EdgeConfig:
  """The choice among placements by their control edges (`edge_selection`).

  Attributes:
    promised: Number of candidates whose ordered step is predicted. Candidates
      with priorities come first, then those with the lowest FIFO price.
    ordered: Number of these candidates for which control edges are computed,
      those with the shortest predicted ordered steps.
    cost: Cost of a simulated step in the computation of control edges, in
      prices. It is below 1, because a price simulates several steps.
    most_steps: Largest number of steps in the estimate of the time of control
      edges.
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
    short: Short annealings before the long one.
    priorities: Annealing under priorities.
    coarse: The search of a smaller problem before the large one.
    edges: The choice among placements by their control edges.
    time: How the default placer divides its time.
    start_prices: Cost of a start of the annealing under priorities, in prices.
      The start needs ranks and a price without a ceiling.
    starting_share: Largest share of the remaining time for these starts.
    edge_ops: Ops that the computation of control edges may simulate.
    priced_ops: Ops that a search without a time budget simulates, over all
      placements.
    fewest: Least number of placements that such a search prices.
    most: Largest number of placements that such a search prices.
    measured: Placements that such a search prices if a price is a real step.
    per_placement: Prices per legal placement of a graph. A search ends when it
      has made so many, but at least `fewest`: it then has tried almost all
      placements of a tiny graph. Larger graphs have far more placements.
  """

  annealing: AnnealingConfig = AnnealingConfig()
  start: StartConfig = StartConfig()
  fit: FitConfig = FitConfig()
  short: ShortConfig = ShortConfig()
  priorities: PriorityConfig = PriorityConfig()
  coarse: CoarseConfig = CoarseConfig()
  edges: EdgeConfig = EdgeConfig()
  time: TimeConfig = TimeConfig()
  start_prices: int = 3
  starting_share: float = .5
  edge_ops: int = 1_000_000
  priced_ops: int = 80_000_000
  fewest: int = 500
  most: int = 20_000
  measured: int = 300
  per_placement: int = 50


DEFAULT = SearchConfig()
