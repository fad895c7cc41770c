"""Help texts for the arguments that become a `request.Request`.

Each text has the style of argparse. `sentence` turns a text into a sentence,
which is the style of absl's flags.
"""

from __future__ import annotations

# Graphs that a program also runs, not only prices, have TensorFlow ops.
RUNNABLE_GRAPH = (
    'a captured graph or a folder of them, SavedModel folder, .keras file, '
    'GraphDef or MetaGraph (.pb, .pbtxt, .meta), module:function that returns '
    'a Keras model, keras_applications:NAME, or a workload of the papers such '
    'as rnnlm-2 or rnnlm-2@tiny')
GRAPH = (f'{RUNNABLE_GRAPH}; or a graph with costs of its own: a CostGraphDef '
         'or RunMetadata, or JSON as docs/graph_json.md describes it')
CLUSTER = (
    "preset (such as 2xP100, 8xV100, 2xP100+2xK40, 2x8xA100-ib), "
    "'local', grpc://host:port, a cluster file or a plan, for its cluster; "
    '`gdp cluster --help` has the grammar')
BATCH_SIZE = (
    'size of dimensions that the graph leaves open; of inputs of a Keras '
    'model or SavedModel, only of the first dimension')
TRIP_COUNT = ('iterations of while loops whose number the graph does not tell; '
              'of nested loops of this kind, the product')
PROFILE = ('a profile of measured ops, as written by `gdp profile`; by default '
           'the roofline')
CALIBRATION = (
    'what `gdp calibrate --output=FILE` measured of the cards of the '
    'cluster; by default that of this machine for its own cards')
MAX_MEMORY = ('what plans may use of memories at most, such as '
              'GPU:0=12GB,CPU=64GB; GPU stands for every GPU; by default what '
              'TensorFlow can allocate')
MAY_ROUND = ('let float arithmetic go from GPUs to CPUs and back, which round '
             'it otherwise; by default the numbers of a program stay what they '
             'are')
SIGNATURE = ("of a SavedModel; by default 'serving_default' or the only one")
SHAPE = ('shape of an input of a SavedModel, such as input=32,224,224,3; once '
         'for each input')
PINS = ('keep: what the graph asks for by tf.device stays there, where the '
        'cluster has such a device; ignore: it may go elsewhere')
SPLIT_TABLES = ('which tables, such as embeddings, are in parts, so that each '
                'part may be elsewhere: auto, those that no device can hold; '
                'off; or layers with numbers of parts, words=4,head=2')
SEED = 'the same seed gives the same result'


def sentence(text: str) -> str:
  """'a profile' -> 'A profile.'"""
  return f'{text[0].upper()}{text[1:]}.'
