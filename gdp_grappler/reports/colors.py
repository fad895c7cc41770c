"""One colour for each family of ops, and for each device, in every picture."""

from __future__ import annotations

# What is no op: tensors that are sent, and what a device does for them.
TRANSFER = '#8c8c8c'
# After Paul Tol's "muted" and "light" schemes, which differ for the colour
# blind; related families are near each other.
FAMILIES = {
    'matmul': '#332288',
    'batch_matmul': '#5b4fb0',
    'convolution': '#117733',
    'convolution_gradient': '#44aa99',
    'depthwise': '#6fc7b5',
    'recurrent': '#882255',
    'elementwise': '#88ccee',
    'movement': '#bbbbbb',
    'transpose': '#999933',
    'reduction': '#ddcc77',
    'normalization': '#eedd88',
    'pooling': '#aa4499',
    'gather': '#cc6677',
    'scatter': '#ee8866',
    'random': '#77aadd',
    'sort': '#ffaabb',
}
_DEVICES = ('#4477aa', '#ee6677', '#228833', '#ccbb44', '#66ccee', '#aa3377',
            '#997700', '#004488', '#bb5566', '#225522')


def of_device(index: int) -> str:
  """The colour of a device, by its place in the cluster."""
  return _DEVICES[index % len(_DEVICES)]
