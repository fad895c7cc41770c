"""Kinds of ops: sets of op types, each named after a common property.

Other modules use these sets instead of their own lists of types. This module
does not need TensorFlow. `tests/graph/op_kinds_test.py` runs the ops and checks
whose buffers they return.
"""

from __future__ import annotations

# Variables. All other tensors are allocated anew in every step.
REFERENCE_VARIABLES = frozenset(('Variable', 'VariableV2'))
VARIABLES = REFERENCE_VARIABLES | {'VarHandleOp'}
# Ops that output the value of a variable without a copy.
VARIABLE_VALUES = REFERENCE_VARIABLES | {'ReadVariableOp'}

# Inputs and outputs of a graph. '_DeviceArg' and '_DeviceRetval' are those of a
# function whose devices are settled.
PLACEHOLDERS = frozenset(('Placeholder', 'PlaceholderV2'))
BATCHES = frozenset(('IteratorGetNext', 'IteratorGetNextSync'))
ARGUMENTS = frozenset(('_Arg', '_DeviceArg'))
RETURNS = frozenset(('_Retval', '_DeviceRetval'))

# Loops and conditions as dataflow; see `control_flow.frames`.
ENTERS = frozenset(('Enter', 'RefEnter'))
EXITS = frozenset(('Exit', 'RefExit'))
MERGES = frozenset(('Merge', 'RefMerge'))
NEXT_ITERATIONS = frozenset(('NextIteration', 'RefNextIteration'))
SWITCHES = frozenset(('Switch', 'RefSwitch', '_SwitchN'))
CONTROL_FLOW = (ENTERS | EXITS | MERGES | NEXT_ITERATIONS | SWITCHES
                | {'LoopCond'})

# Calls of functions: loops, conditions and plain calls.
WHILES = frozenset(('While', 'StatelessWhile'))
IFS = frozenset(('If', 'StatelessIf'))
CASES = frozenset(('Case', 'StatelessCase'))
CONDITIONS = IFS | CASES
PLAIN_CALLS = frozenset(('PartitionedCall', 'StatefulPartitionedCall'))
# Calls that Grappler can replace by the bodies of the functions.
CALLS = WHILES | CONDITIONS | PLAIN_CALLS

# Lists of tensors.
LIST_MAKERS = frozenset(
    ('EmptyTensorList', 'TensorListReserve', 'TensorListFromTensor'))
# Ops that make lists whose elements are not inputs of the op.
NEW_LISTS = LIST_MAKERS - {'TensorListFromTensor'}
# Ops whose output is the list of the first input. Elements are not copied.
LIST_CHANGES = frozenset(
    ('TensorListPushBack', 'TensorListResize', 'TensorListSetItem'))

# Stacks of TensorFlow 1.
STACKS = frozenset(('Stack', 'StackV2'))
STACK_PUSHES = frozenset(('StackPush', 'StackPushV2'))
STACK_POPS = frozenset(('StackPop', 'StackPopV2'))

# Ops that output their first input itself, value and buffer, even if other ops
# read this input.
_UNTOUCHED = (CONTROL_FLOW - MERGES) | {
    'EnsureShape', 'GuaranteeConst', 'Identity', 'PlaceholderWithDefault',
    'PreventGradient', 'RefIdentity', 'StopGradient'
}
# Like `_UNTOUCHED`, but a kernel reads the data.
_INSPECTIONS = frozenset(('CheckNumerics', 'CheckNumericsV2', 'Print'))
HANDED_ON = _UNTOUCHED | _INSPECTIONS
# Ops that output the buffer of the first input with another shape or type.
VIEWS = frozenset(('Bitcast', 'ExpandDims', 'Reshape', 'Squeeze'))
# Ops that output the value of the first input, copied or not.
SAME_VALUE = HANDED_ON | {'Snapshot'}

# Ops that assign a value to the variable of the first input.
_REFERENCE_ASSIGNMENTS = frozenset(('Assign', 'AssignAdd', 'AssignSub'))
ASSIGNMENTS = _REFERENCE_ASSIGNMENTS | {
    'AssignVariableOp', 'AssignAddVariableOp', 'AssignSubVariableOp'
}
# Ops that change the buffer of the first input and output it.
IN_PLACE = _REFERENCE_ASSIGNMENTS | {
    'ApplyAdaMax', 'ApplyAdadelta', 'ApplyAdagrad', 'ApplyAdagradDA',
    'ApplyAdagradV2', 'ApplyAdam', 'ApplyAddSign', 'ApplyCenteredRMSProp',
    'ApplyFtrl', 'ApplyFtrlV2', 'ApplyGradientDescent', 'ApplyMomentum',
    'ApplyPowerSign', 'ApplyProximalAdagrad', 'ApplyProximalGradientDescent',
    'ApplyRMSProp', 'InplaceAdd', 'InplaceSub', 'InplaceUpdate', 'ScatterAdd',
    'ScatterDiv', 'ScatterMax', 'ScatterMin', 'ScatterMul', 'ScatterNdAdd',
    'ScatterNdMax', 'ScatterNdMin', 'ScatterNdSub', 'ScatterNdUpdate',
    'ScatterSub', 'ScatterUpdate', 'SparseApplyAdadelta', 'SparseApplyAdagrad',
    'SparseApplyAdagradDA', 'SparseApplyAdagradV2',
    'SparseApplyCenteredRMSProp', 'SparseApplyFtrl', 'SparseApplyFtrlV2',
    'SparseApplyMomentum', 'SparseApplyProximalAdagrad',
    'SparseApplyProximalGradientDescent', 'SparseApplyRMSProp',
    'StridedSliceAssign'
}

# Ops without memory of their own. Their output is the buffer of their first
# data input or, without data input, of a variable. A type is listed only if
# this holds for all its ops. These types are not listed:
# * Snapshot and all arithmetic: they copy if other ops read the input;
# * Cast, Slice, Split, Transpose, ...: types, shapes and values decide;
# * IdentityN, RefSelect: they output other inputs than the first one.
ALIASES = (HANDED_ON | VIEWS | MERGES | IN_PLACE | LIST_CHANGES | VARIABLES
           | RETURNS
           | {'ReadVariableOp'})

# Values that are fed or known before the step, and ops that read shapes, not
# data.
_KNOWN_BEFORE = PLACEHOLDERS | ARGUMENTS | {'Const'}
_METADATA = frozenset(('Rank', 'Shape', 'ShapeN', 'Size', 'VariableShape',
                       'TensorListElementShape', 'TensorListLength'))
# Ops that make an empty list, or hand on a list or an element of it.
_LIST_REFERENCES = (NEW_LISTS | LIST_CHANGES
                    | {'TensorListGetItem', 'TensorListPopBack'})
# Ops that store a reference in a stack or an array, or take it out. There are
# two exceptions, which cost nothing here: a push with `swap_memory` on a GPU
# copies to the host, and a second write to an element of a gradient array adds.
_STORED_REFERENCES = STACK_PUSHES | STACK_POPS | {
    'TensorArrayRead', 'TensorArrayReadV2', 'TensorArrayReadV3',
    'TensorArrayWrite', 'TensorArrayWriteV2', 'TensorArrayWriteV3'
}
# Ops that output an existing buffer or nothing. The executor visits them, but
# no kernel touches their data.
NO_KERNEL = (_UNTOUCHED | VIEWS | MERGES | VARIABLES | RETURNS | _KNOWN_BEFORE
             | _METADATA | _LIST_REFERENCES | _STORED_REFERENCES
             | {
                 'AssignVariableOp', 'ControlTrigger', 'IdentityN', 'NoOp',
                 'ReadVariableOp'
             })

# State that exists only during a step.
STEP_STATE = STACKS | {
    'TemporaryVariable', 'TensorArray', 'TensorArrayV2', 'TensorArrayV3'
}
# Arithmetic of optimizers, and ops that output an unchanged value.
UPDATE_ARITHMETIC = frozenset(
    ('Add', 'AddN', 'AddV2', 'Cast', 'Div', 'DivNoNan', 'Identity', 'Maximum',
     'Minimum', 'Mul', 'Neg', 'Pow', 'RealDiv', 'Reciprocal', 'Rsqrt', 'Sign',
     'Sqrt', 'Square', 'SquaredDifference', 'Sub', 'Xdivy'))

# An op that depends on one of these saves or restores. It is no part of a step.
CHECKPOINTING = frozenset(('SaveV2', 'SaveSlices', 'Save', 'MergeV2Checkpoints',
                           'RestoreV2', 'Restore', 'RestoreSlice'))
# Ops that set or check initial values, unless they read a variable or an input.
SETTING = frozenset(('NoOp', 'Assign', 'AssignVariableOp', 'VarIsInitializedOp',
                     'IsVariableInitialized', 'InitializeTableV2',
                     'InitializeTableFromTextFileV2', 'LookupTableImportV2'))

# Ops that put a tensor into an optional or take it out.
OPTIONALS = frozenset(('OptionalFromValue', 'OptionalGetValue'))
