from helpers import benchmarks

published = benchmarks.module('published')


def test_cards_have_the_figures_of_those_who_published():
  for card, flops, rate in (('P100', 10.6e12, 3), ('K80', 4.37e12, 1)):
    gpu = published.cluster(card).devices[1]
    assert (gpu.peak_flops, gpu.winograd_rate) == (flops, rate)


def test_a_row_for_each_published_figure(monkeypatch):
  """ResNets take minutes to build, so one small network stands for all."""
  built = []

  def small(network, batch):
    built.append((network, batch))
    keras = published.keras
    images = keras.Input((8, 8, 3), batch_size=batch)
    flat = keras.layers.Flatten()(images)
    result = keras.Model(images, keras.layers.Dense(3)(flat))
    result.compile('sgd', 'mse')
    return result

  monkeypatch.setattr(published, 'model', small)
  rows = list(published.rows())
  assert len(built) == len(set(built)) == 6
  assert [r.network for r in rows if r.role == 'fitted'
         ] == ['InceptionV3', 'ResNet50', 'VGG16']
  assert rows[0].published == 142 and all(r.simulated > 0 for r in rows)


def test_normalization_is_one_op():
  layers = published.keras.layers
  fused = published._fused(layers.BatchNormalization(name='bn'))
  traced = published.tf.function(fused).get_concrete_function(
      published.tf.TensorSpec([2, 4, 4, 3]))
  assert 'FusedBatchNormV3' in {op.type for op in traced.graph.get_operations()}
  assert type(published._fused(layers.ReLU())) is layers.ReLU
