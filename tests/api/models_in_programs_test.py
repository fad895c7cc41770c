"""Models that a program trains and places, by fresh interpreters."""

import pytest

from helpers import fresh

# The first lines of a program with two CPU devices. The program places layers
# named "moved" on the second device.
_TWO_CPUS = """
import json

import keras
import numpy as np
import tensorflow as tf

import gdp_grappler

cpu, = tf.config.list_physical_devices('CPU')
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
tf.config.optimizer.set_experimental_options(
    {'gdp_placement': {'plan': {'moved': 'CPU:1'}, 'min_ops': 1}})
"""


@pytest.mark.e2e
def test_variables_stay_where_fit_has_put_them():
  """Once `place` moved the variables of a running `fit` back."""
  done = fresh.run_code(_TWO_CPUS + """
model = keras.Sequential([
    keras.Input((4,)), keras.layers.Dense(4, name='moved'),
    keras.layers.Dense(2)])
model.compile('adam', 'mse')
seen = []


class Places(keras.callbacks.Callback):

  def on_epoch_end(self, epoch, logs=None):
    function = model.train_function
    gdp_grappler.place(model, '2xP100', placer='random', verbose=False)
    seen.append((model.layers[0].kernel.value.device[-5:],
                 model.train_function is function, function.is_placed))


model.fit(np.zeros((8, 4)), np.zeros((8, 2)), epochs=2, verbose=0,
          callbacks=[Places()])
print(json.dumps(seen))
""")
  assert done.code == 0, done.stderr
  assert done.results == [['CPU:1', True, True]] * 2


@pytest.mark.e2e
def test_a_model_is_placed_although_the_option_was_on_before():
  """Once the optimizer's variables had no values, and `fit` failed."""
  done = fresh.run_code("""
import keras
import numpy as np
import tensorflow as tf

import gdp_grappler

tf.config.optimizer.set_experimental_options({'gdp_placement': True})
tf.function(lambda x: x + 1)(1)
for value in (True, False):
  tf.config.optimizer.set_experimental_options({'gdp_placement': value})
  model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
  model.compile('adam', 'mse')
  plan = gdp_grappler.place(model, '2xP100', placer='random')
  assert 'IteratorGetNext' in plan.graph.op_types
  model.fit(np.zeros((8, 4)), np.zeros((8, 2)), verbose=0)
""")
  assert done.code == 0, done.stderr


@pytest.mark.e2e
def test_a_program_may_run_ops_asynchronously():
  """Once a cancelled function ended `fit`, `place` and all later calls."""
  done = fresh.run_code(_TWO_CPUS + """
tf.config.experimental.set_synchronous_execution(False)
model = keras.Sequential([
    keras.Input((4,)), keras.layers.Dense(4, name='moved'),
    keras.layers.Dense(2)])
model.compile('adam', 'mse')
model.fit(np.zeros((8, 4)), np.zeros((8, 2)), verbose=0)
gdp_grappler.place(model, '2xP100', placer='random', verbose=False)
model.fit(np.zeros((8, 4)), np.zeros((8, 2)), verbose=0)
print(json.dumps([model.layers[0].kernel.value.device[-5:],
                  tf.config.experimental.get_synchronous_execution()]))
""")
  assert done.results == ['CPU:1', False]
