"""Small graphs for tests, from edges or from a seed."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.graph import op_graph


def make_graph(edges: Sequence[tuple[int,
                                     ...]] = (), num_ops: int | None = None, *,
               name: str = 'test', names: Sequence[str] | None = None,
               op_types: Sequence[str] | None = None, flops=0.0, io_bytes=0.0,
               param_bytes=0, groups: Sequence[int] | None = None,
               allowed_types: np.ndarray | None = None,
               pins: Sequence[str] | None = None,
               user_pins: Sequence[bool] | None = None,
               devices: Sequence[str] | None = None,
               same_numbers: np.ndarray | None = None,
               may_round: bool = False) -> op_graph.OpGraph:
  """Returns a graph from its edges; all other arguments have simple defaults.

  Args:
    edges: `(producer, consumer)` is a control edge, `(producer, consumer,
      bytes)` carries the producer's output 0 and `(producer, consumer, bytes,
      output)` another output. Edges of one output carry one tensor, whose size
      is the first one given.
    num_ops: N; by default the highest op of the edges, plus 1.
    name: Name of the graph.
    names: [N], by default 'op0', 'op1', ...
    op_types: [N], by default 'MatMul' throughout.
    flops: [N] or one number for all.
    io_bytes: [N] or one number for all.
    param_bytes: [N] or one number for all.
    groups: [N], by default one group per op.
    allowed_types: [N, 2], by default all True.
    pins: [N], by default none.
    user_pins: [N], by default False.
    devices: [N], by default none.
    same_numbers: [N, 2], by default all True.
    may_round: Whether ops may round differently.
  """
  if num_ops is None:
    num_ops = 1 + max((max(edge[:2]) for edge in edges), default=-1)
  tensors, tensor_bytes, edge_tensors = {}, [], []
  for edge in edges:
    if len(edge) == 2:
      edge_tensors.append(-1)
      continue
    key = edge[0], edge[3] if len(edge) > 3 else 0
    if key not in tensors:
      tensors[key] = len(tensors)
      tensor_bytes.append(edge[2])
    edge_tensors.append(tensors[key])
  return op_graph.OpGraph(
      name=name, names=names or [f'op{i}' for i in range(num_ops)],
      op_types=op_types or ['MatMul'] * num_ops,
      edges=[edge[:2] for edge in edges
            ], edge_tensors=edge_tensors, tensor_ops=[op for op, _ in tensors],
      tensor_bytes=tensor_bytes, flops=np.broadcast_to(flops, num_ops),
      io_bytes=np.broadcast_to(io_bytes, num_ops), param_bytes=np.broadcast_to(
          param_bytes,
          num_ops), groups=np.arange(num_ops) if groups is None else groups,
      allowed_types=(np.ones(
          (num_ops, len(op_graph.DEVICE_TYPES)), bool) if allowed_types is None
                     else allowed_types), pins=pins or [''] * num_ops,
      user_pins=[False] * num_ops if user_pins is None else user_pins,
      devices=devices or [''] * num_ops, same_numbers=same_numbers,
      may_round=may_round)


def variables(param_bytes: Sequence[int]) -> dict[str, Sequence]:
  """Returns arguments of `make_graph`: each op with bytes is a variable."""
  types = ['VarHandleOp' if size else 'MatMul' for size in param_bytes]
  return {'param_bytes': param_bytes, 'op_types': types}


def chain(num_ops: int, tensor_bytes: int = 100, **fields) -> op_graph.OpGraph:
  """Returns op0 -> op1 -> ... with tensors of one size."""
  return make_graph([(i, i + 1, tensor_bytes) for i in range(num_ops - 1)],
                    num_ops, **fields)


def fan_out(width: int, tensor_bytes: int = 100, **fields) -> op_graph.OpGraph:
  """Returns a graph in which op0 sends a tensor to op1 .. op`width`."""
  return make_graph([(0, i, tensor_bytes) for i in range(1, width + 1)],
                    width + 1, **fields)


def random_graph(seed: int, num_ops: int, *, fan_in: float = 1.8,
                 window: int = 40, control: float = 0.1,
                 aliases: float = 0.1) -> op_graph.OpGraph:
  """Returns a random layered graph, similar to a training step.

  Ops are numbered at random, not in topological order. Some ops have two
  outputs, hold parameters or share groups. Some tensors are empty. All ops may
  be on any device.

  Args:
    seed: Seed of all random numbers.
    num_ops: N, the number of ops.
    fan_in: Mean number of inputs of an op.
    window: Largest distance to the producer of an input, in ops. A small window
      makes a deep graph, a large window a wide graph.
    control: Share of the edges that are control edges.
    aliases: Share of the ops whose output is their input's buffer.
  """
  rng = np.random.default_rng(seed)
  number = rng.permutation(num_ops)
  counts = np.minimum(rng.poisson(fan_in, num_ops), np.arange(num_ops))
  consumers = np.repeat(np.arange(num_ops), counts)
  reach = np.minimum(consumers, window)
  producers = consumers - 1 - (rng.random(consumers.size) * reach).astype(int)
  kinds = np.where(
      rng.random(consumers.size) < control, -1, (rng.random(consumers.size)
                                                 < 0.2).astype(int))
  sizes = rng.choice([0, 8, 1 << 10, 1 << 16, 1 << 20, 12345678], (num_ops, 2))
  edges = [(number[p], number[c]) if kind < 0 else
           (number[p], number[c], sizes[p, kind], kind) for p, c, kind in zip(
               producers.tolist(), consumers.tolist(), kinds.tolist())]
  op_types = np.where(rng.random(num_ops) < aliases, 'Identity', 'MatMul')
  groups = np.arange(num_ops)
  shared = rng.random(num_ops) < 0.2
  groups[shared] = rng.integers(0, num_ops, shared.sum())
  return make_graph(
      edges, num_ops, name=f'random{seed}', op_types=op_types.tolist(),
      flops=rng.exponential(1e9, num_ops) * (rng.random(num_ops) < 0.5),
      io_bytes=rng.exponential(1e6, num_ops),
      param_bytes=(rng.integers(1, 1 << 20, num_ops) *
                   (rng.random(num_ops) < 0.1)),
      groups=np.unique(groups, return_inverse=True)[1])
