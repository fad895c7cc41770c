"""The colours of op families and of devices, the same in every picture."""

from __future__ import annotations

from gdp_grappler.evaluation.costs import op_families

# For tensors that are sent, and for the work of a device to send them.
TRANSFER = '#8c8c8c'
# After Paul Tol's "muted" and "light" schemes, made for colour-blind people.
# Related families have similar colours.
FAMILIES = {
    'matmul': '#332288',
    'batch_matmul': '#5b4fb0',
    'decomposition': '#9a91d8',
    'convolution': '#117733',
    'convolution_gradient': '#44aa99',
    'depthwise': '#6fc7b5',
    'recurrent': '#882255',
    'call': '#661100',
    'elementwise': '#88ccee',
    'scalar': '#4499cc',
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
# Trace viewers accept only these names. Each is the nearest to the colour.
TRACE_FAMILIES = {
    'matmul': 'light_memory_dump',
    'batch_matmul': 'rail_response',
    'decomposition': 'heap_dump_stack_frame',
    'convolution': 'good',
    'convolution_gradient': 'background_memory_dump',
    'depthwise': 'thread_state_running',
    'recurrent': 'thread_state_uninterruptible',
    'call': 'black',
    'elementwise': 'thread_state_runnable',
    'scalar': 'vsync_highlight_color',
    'movement': 'cq_build_abandoned',
    'transpose': 'olive',
    'reduction': 'cq_build_attempt_runnig',
    'normalization': 'cq_build_running',
    'pooling': 'detailed_memory_dump',
    'gather': 'cq_build_attempt_failed',
    'scatter': 'thread_state_unknown',
    'random': 'yellow',
    'sort': 'cq_build_failed',
}
TRACE_TRANSFER = 'generic_work'
# For ops that launch no kernel, and for families that take little time.
NO_KERNEL, OTHER = '#dde0c8', '#555555'
_DEVICES = ('#4477aa', '#ee6677', '#228833', '#ccbb44', '#66ccee', '#aa3377',
            '#997700', '#004488', '#bb5566', '#225522')


def of_op_in_trace(op_type: str) -> str:
  """Returns the colour of an op, by its name in trace viewers."""
  return TRACE_FAMILIES[op_families.family(op_type).name]


def of_device(index: int) -> str:
  """Returns the colour of a device, by its index in the cluster."""
  return _DEVICES[index % len(_DEVICES)]
