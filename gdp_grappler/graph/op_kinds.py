"""Kinds of ops: sets of op types, each named for what its members share.

Other modules ask these sets instead of listing types of their own. They need
nothing of TensorFlow; `tests/graph/op_kinds_test.py` runs the ops there and
looks whose buffers come out.
"""

from __future__ import annotations

# Variables: all others lie in memory that ops allocate anew in every step.
REFERENCE_VARIABLES = frozenset(('Variable', 'VariableV2'))
VARIABLES = REFERENCE_VARIABLES | {'VarHandleOp'}
# Hand out the value of a variable, not a copy.
VARIABLE_VALUES = REFERENCE_VARIABLES | {'ReadVariableOp'}

# What comes into a graph and what leaves it. The second ones of a function are
# those of one whose devices are settled.
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

# Loops, conditions and other calls of functions.
WHILES = frozenset(('While', 'StatelessWhile'))
IFS = frozenset(('If', 'StatelessIf'))
CASES = frozenset(('Case', 'StatelessCase'))
CONDITIONS = IFS | CASES
PLAIN_CALLS = frozenset(('PartitionedCall', 'StatefulPartitionedCall'))
# What Grappler can replace by the functions' bodies.
CALLS = WHILES | CONDITIONS | PLAIN_CALLS

# Lists of tensors.
LIST_MAKERS = frozenset(
    ('EmptyTensorList', 'TensorListReserve', 'TensorListFromTensor'))
# The output is the list of the first input; its elements are not copied.
LIST_CHANGES = frozenset(
    ('TensorListPushBack', 'TensorListResize', 'TensorListSetItem'))

# The first input itself comes out, value and buffer, whoever else reads it.
_UNTOUCHED = (CONTROL_FLOW - MERGES) | {
    'EnsureShape', 'GuaranteeConst', 'Identity', 'PlaceholderWithDefault',
    'PreventGradient', 'RefIdentity', 'StopGradient'
}
# As before, but a kernel looks at the data.
_INSPECTIONS = frozenset(('CheckNumerics', 'CheckNumericsV2', 'Print'))
HANDED_ON = _UNTOUCHED | _INSPECTIONS
# The buffer of the first input under another shape or type.
VIEWS = frozenset(('Bitcast', 'ExpandDims', 'Reshape', 'Squeeze'))
# The value of the first input, whether copied or not.
SAME_VALUE = HANDED_ON | {'Snapshot'}

# Assign a value to the variable that comes first.
_REFERENCE_ASSIGNMENTS = frozenset(('Assign', 'AssignAdd', 'AssignSub'))
ASSIGNMENTS = _REFERENCE_ASSIGNMENTS | {
    'AssignVariableOp', 'AssignAddVariableOp', 'AssignSubVariableOp'
}
# Change the buffer of their first input and hand it on.
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

# Ops without memory of their own: what they hand out is the buffer of their
# first data input or, without one, a variable's. Only what is so of every op of
# a type counts. Not here are
# * Snapshot, and all arithmetic: they copy unless nobody else reads the input;
# * Cast, Slice, Split, Transpose, ...: depends on types, shapes and values;
# * IdentityN, RefSelect: hand on other inputs than the first one.
ALIASES = (HANDED_ON | VIEWS | MERGES | IN_PLACE | LIST_CHANGES | VARIABLES
           | RETURNS
           | {'ReadVariableOp'})

# Of what is fed or known before the step; and of shapes, not of data.
_KNOWN_BEFORE = PLACEHOLDERS | ARGUMENTS | {'Const'}
_METADATA = frozenset(('Rank', 'Shape', 'ShapeN', 'Size', 'VariableShape',
                       'TensorListElementShape', 'TensorListLength'))
# Ops that hand on a buffer or nothing: the executor visits them, but no kernel
# touches their data.
NO_KERNEL = (_UNTOUCHED | VIEWS | MERGES | VARIABLES | RETURNS | _KNOWN_BEFORE
             | _METADATA
             | {'AssignVariableOp', 'IdentityN', 'NoOp', 'ReadVariableOp'})

# State that is gone after a step.
STEP_STATE = frozenset(('Stack', 'StackV2', 'TemporaryVariable', 'TensorArray',
                        'TensorArrayV2', 'TensorArrayV3'))
# What optimizers are made of, and what passes a value on unchanged.
UPDATE_ARITHMETIC = frozenset(
    ('Add', 'AddN', 'AddV2', 'Cast', 'Div', 'DivNoNan', 'Identity', 'Maximum',
     'Minimum', 'Mul', 'Neg', 'Pow', 'RealDiv', 'Reciprocal', 'Rsqrt', 'Sign',
     'Sqrt', 'Square', 'SquaredDifference', 'Sub', 'Xdivy'))

# An op that needs one of these saves or restores; it is no part of a step.
CHECKPOINTING = frozenset(('SaveV2', 'SaveSlices', 'Save', 'MergeV2Checkpoints',
                           'RestoreV2', 'Restore', 'RestoreSlice'))
# Set initial values or look at them, unless they read a variable or an input.
SETTING = frozenset(('NoOp', 'Assign', 'AssignVariableOp', 'VarIsInitializedOp',
                     'IsVariableInitialized', 'InitializeTableV2',
                     'InitializeTableFromTextFileV2', 'LookupTableImportV2'))

# Put a tensor into an optional or take it out.
OPTIONALS = frozenset(('OptionalFromValue', 'OptionalGetValue'))
# Lists whose elements somebody else has put in, or nobody yet.
NEW_LISTS = frozenset(('EmptyTensorList', 'TensorListReserve'))
