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
    'a file of `gdp calibrate --output=FILE` for the cards of the cluster; '
    "by default this machine's calibration, for its own cards")
MAX_MEMORY = ('the most memory that plans may use, such as '
              'GPU:0=12GB,CPU=64GB; GPU stands for every GPU; by default all '
              'that TensorFlow can allocate')
MAY_ROUND = ('let float arithmetic move between GPUs and CPUs, which round '
             'differently; by default the numbers of a program stay the same')
SIGNATURE = ("signature of a SavedModel; by default 'serving_default' or the "
             'only one')
SHAPE = ('shape of an input of a SavedModel, such as input=32,224,224,3; once '
         'for each input')
PINS = ('keep: an op stays on the device that the graph asks for by tf.device, '
        'if the cluster has this device; ignore: the op may move')
SPLIT_TABLES = ('which tables, such as embeddings, are made in parts, so that '
                'each part may have another device: auto, those that no device '
                'can hold; off, none; or layers with numbers of parts, such as '
                'words=4,head=2')
SEED = 'the same seed gives the same result'


def sentence(text: str) -> str:
  """'a profile' -> 'A profile.'"""
  return f'{text[0].upper()}{text[1:]}.'
