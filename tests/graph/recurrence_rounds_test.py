import pytest
import tensorflow as tf

from helpers import graph_defs


def _found(make):
  """Rounds and FLOPs of the op that is called 'found'."""
  read = graph_defs.read(lambda: make(tf.raw_ops))
  op = read.names.index('found')
  assert (read.rounds[[i for i in range(read.num_ops) if i != op]] == 1).all()
  return read.rounds[op], read.flops[op]


def _zeros(*shape):
  return tf.zeros(shape)


# 9 time steps, 4 examples, 5 features, 7 units; 336 weights.
@pytest.mark.parametrize('time_major, layers', [(True, 1), (False, 1),
                                                (False, 2)])
def test_time_steps_of_cudnn(time_major, layers):
  """States of [examples, layers, units] were taken for so many layers."""
  sequence = (9, 4, 5) if time_major else (4, 9, 5)
  state = (layers, 4, 7) if time_major else (4, layers, 7)

  def make(raw):
    raw.CudnnRNNV3(input=_zeros(*sequence), input_h=_zeros(*state),
                   input_c=_zeros(*state), params=_zeros(layers * 4 * 7 * 12),
                   sequence_lengths=tf.fill([4], 9), time_major=time_major,
                   name='found')

  assert _found(make) == (9 * layers, 2 * 9 * 4 * layers * 4 * 7 * 12)


@pytest.mark.parametrize('mode, is_training, numbers', [('lstm', True, 5),
                                                        ('gru', True, 4),
                                                        ('rnn_tanh', True, 2),
                                                        ('lstm', False, 0)])
@pytest.mark.parametrize('time_major', [True, False])
def test_cudnn_keeps_its_gates_for_the_gradient(mode, is_training, numbers,
                                                time_major):
  """What the gradient needs had four bytes."""
  sequence = (9, 4, 5) if time_major else (4, 9, 5)
  state = (2, 4, 7) if time_major else (4, 2, 7)

  def make():
    tf.raw_ops.CudnnRNNV3(input=_zeros(*sequence), input_h=_zeros(*state),
                          input_c=_zeros(*state), params=_zeros(900),
                          sequence_lengths=tf.fill([4], 9), rnn_mode=mode,
                          time_major=time_major, is_training=is_training,
                          name='found')

  read = graph_defs.read(make)
  sizes = read.tensor_bytes[read.tensor_ops == read.names.index('found')]
  assert sizes[0] == 9 * 4 * 7 * 4
  if numbers:
    assert sizes[3] == 9 * (2 * 4 * 7) * numbers * 4
  else:
    assert sizes[3] <= 4


def test_a_gradient_has_twice_as_many():

  def make(raw):
    state, output, reserve = _zeros(4, 1, 7), _zeros(4, 9, 7), _zeros(8)
    raw.CudnnRNNBackpropV3(input=_zeros(4, 9, 5), input_h=state, input_c=state,
                           params=_zeros(336), sequence_lengths=tf.fill([4], 9),
                           output=output, output_h=state, output_c=state,
                           output_backprop=output, output_h_backprop=state,
                           output_c_backprop=state, reserve_space=reserve,
                           host_reserved=tf.zeros([8], tf.int8),
                           time_major=False, name='found')

  assert _found(make) == (2 * 9, 2 * 2 * 9 * 4 * 336)


def test_time_steps_of_blocks():

  def make(raw):
    gate = _zeros(7)
    raw.BlockLSTMV2(seq_len_max=tf.constant(9, tf.int64), x=_zeros(9, 4, 5),
                    cs_prev=_zeros(4, 7), h_prev=_zeros(4, 7), w=_zeros(12, 28),
                    wci=gate, wcf=gate, wco=gate, b=_zeros(28), cell_clip=0.,
                    use_peephole=False, name='found')

  assert _found(make)[0] == 9


def test_others_are_launched_once():
  assert _found(
      lambda _: tf.matmul(_zeros(2, 2), _zeros(2, 2), name='found'))[0] == 1
