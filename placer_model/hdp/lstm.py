"""An LSTM on TensorFlow's fused kernels, with a faster gradient."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from placer_model.hdp import weights as weights_lib


class Lstm(tf.Module):
  """The weights of one layer in one direction."""

  def __init__(self, make: weights_lib.Weights, inputs: int, units: int,
               name: str) -> None:
    """Makes the initial weights.

    Args:
      make: Maker of the weights.
      inputs: Width of the layer's input.
      units: Width of its states.
      name: Name of the layer.
    """
    super().__init__(name=name)
    self._weights = make.matrix(inputs + units, 4 * units, f'{name}_kernel')
    self._bias = make.zeros(4 * units, f'{name}_bias')
    self._units = units

  def run(self, x: tf.Tensor, cell: tf.Tensor | None = None,
          hidden: tf.Tensor | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Maps sequences [K, S, inputs] to cells and states, [K, S, units]."""
    zeros = tf.zeros([x.shape[1], self._units])
    return _run(x, zeros if cell is None else cell,
                zeros if hidden is None else hidden,
                tf.convert_to_tensor(self._weights),
                tf.convert_to_tensor(self._bias))

  def step(self, x: tf.Tensor, cell: tf.Tensor,
           hidden: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Runs one step of S sequences, [S, inputs]; it has no gradient."""
    result = tf.raw_ops.LSTMBlockCell(x=x, cs_prev=cell, h_prev=hidden,
                                      w=self._weights, b=self._bias,
                                      forget_bias=1., cell_clip=-1.,
                                      **_without_peephole(self._units))
    return result.cs, result.h


def _without_peephole(units: int) -> dict[str, Any]:
  zeros = tf.zeros([units])
  return dict(wci=zeros, wcf=zeros, wco=zeros, use_peephole=False)


@tf.custom_gradient
def _run(x: tf.Tensor, cell: tf.Tensor, hidden: tf.Tensor, weights: tf.Tensor,
         bias: tf.Tensor) -> Any:
  forward = tf.raw_ops.BlockLSTM(seq_len_max=tf.cast(x.shape[0], tf.int64), x=x,
                                 cs_prev=cell, h_prev=hidden, w=weights, b=bias,
                                 forget_bias=1., cell_clip=-1.,
                                 **_without_peephole(hidden.shape[-1]))

  def gradient(cells_gradient: tf.Tensor,
               hiddens_gradient: tf.Tensor) -> tuple[Any, ...]:
    return _gradient(x, cell, hidden, weights, bias, forward, cells_gradient,
                     hiddens_gradient)

  return (forward.cs, forward.h), gradient


def _gradient(x: tf.Tensor, cell: tf.Tensor, hidden: tf.Tensor,
              weights: tf.Tensor, bias: tf.Tensor, forward: Any,
              cells_gradient: tf.Tensor,
              hiddens_gradient: tf.Tensor) -> tuple[Any, ...]:
  """Returns the gradients of the five arguments of `_run`.

  The kernel BlockLSTMGrad adds to the weights' whole gradient matrix in every
  step, which takes nearly all of its time if there are few sequences. Here one
  product over all steps computes the same matrix.
  """
  steps, units = x.shape[0], hidden.shape[-1]
  cells = tf.concat([cell[None], forward.cs[:-1]], axis=0)
  hiddens = tf.concat([hidden[None], forward.h[:-1]], axis=0)
  kept = ('i', 'cs', 'f', 'o', 'ci', 'co')

  def back(k: tf.Tensor, by_cell: tf.Tensor, by_hidden: tf.Tensor,
           gates: tf.TensorArray) -> tuple[Any, ...]:
    at_k = tf.raw_ops.LSTMBlockCellGrad(
        x=x[k], cs_prev=cells[k], h_prev=hiddens[k], w=weights, b=bias,
        cs_grad=by_cell + cells_gradient[k],
        h_grad=by_hidden + hiddens_gradient[k],
        **{name: getattr(forward, name)[k] for name in kept},
        **_without_peephole(units))
    by_hidden = tf.matmul(at_k.dicfo, weights[-units:], transpose_b=True)
    return k - 1, at_k.cs_prev_grad, by_hidden, gates.write(k, at_k.dicfo)

  zeros = tf.zeros_like(cell)
  _, by_cell, by_hidden, gates = tf.while_loop(
      lambda k, *_: k >= 0, back,
      (steps - 1, zeros, zeros,
       tf.TensorArray(tf.float32, steps,
                      element_shape=[cell.shape[0], 4 * units])))
  gates = gates.stack()  # [K, S, 4 units]
  flat = tf.reshape(gates, [-1, 4 * units])
  read = tf.reshape(tf.concat([x, hiddens], axis=-1), [-1, weights.shape[0]])
  return (tf.tensordot(gates, tf.transpose(weights[:-units]),
                       1), by_cell, by_hidden,
          tf.matmul(read, flat, transpose_a=True), tf.reduce_sum(flat, axis=0))
