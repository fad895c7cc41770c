"""The native libraries: the one list that setup.py and BUILD share.

Both Starlark and Python: literals only. Paths are relative to the top folder;
every library ends up in gdp_grappler/lib/.
"""

# The TensorFlow release that the libraries, and hence the package, are tied
# to: the pass is registered through TensorFlow's C++ interface, which may
# change with every minor release.
TENSORFLOW_MINOR = "2.21"

# Our own code compiles without a warning.
WARNINGS = ["-Wall", "-Werror"]

# Flags of the TensorFlow wheel (tf.sysconfig.get_compile_flags), and NDEBUG
# because the wheel is an optimized build.
TENSORFLOW_DEFINES = [
    "_GLIBCXX_USE_CXX11_ABI=1",
    "EIGEN_MAX_ALIGN_BYTES=64",
    "NDEBUG",
]

NATIVE_LIBRARIES = {
    # Found by `import tensorflow`; free of TensorFlow's symbols so that it
    # loads next to any release.
    "libgdp_loader.so": {
        "srcs": ["gdp_grappler/plugin/loader.c"],
        "hdrs": [],
        "copts": ["-std=gnu11", "-O2"],
        "defines": ['GDP_TENSORFLOW_MINOR="2.21"'],
        "linkopts": ["-ldl"],
        "tensorflow": False,
    },
    # The Grappler pass and the op estimator.
    "libgdp_grappler.so": {
        "srcs": [
            "gdp_grappler/graph/node_table.cc",
            "gdp_grappler/graph/node_validation.cc",
            "gdp_grappler/graph/op_properties.cc",
            "gdp_grappler/graph/start_order.cc",
            "gdp_grappler/plugin/grappler_pass.cc",
        ],
        "hdrs": [
            "gdp_grappler/graph/matrix_flops.h",
            "gdp_grappler/graph/node_table.h",
            "gdp_grappler/graph/op_estimator.h",
            "gdp_grappler/graph/op_flops.h",
            "gdp_grappler/graph/open_sizes.h",
            "gdp_grappler/graph/shape_inference.h",
            "gdp_grappler/graph/shape_sizes.h",
            "gdp_grappler/graph/shape_values.h",
            "gdp_grappler/graph/start_order.h",
            "gdp_grappler/plugin/graph_fingerprint.h",
            "gdp_grappler/plugin/pass_response.h",
        ],
        "copts": ["-std=c++17", "-O2"],
        "defines": [],
        "linkopts": [],
        "tensorflow": True,
    },
    # Orders, paths, units and scopes of large graphs.
    "libgdp_graph.so": {
        "srcs": [
            "gdp_grappler/graph/graph_algorithms.cc",
            "gdp_grappler/graph/structure/name_scopes.cc",
        ],
        "hdrs": [],
        "copts": ["-std=c++17", "-O3"],
        "defines": [],
        "linkopts": [],
        "tensorflow": False,
    },
    # The discrete-event simulator.
    "libgdp_simulator.so": {
        "srcs": ["gdp_grappler/evaluation/simulation/simulator.cc"],
        "hdrs": [
            "gdp_grappler/evaluation/simulation/simulator_chains.h",
            "gdp_grappler/evaluation/simulation/simulator_copies.h",
            "gdp_grappler/evaluation/simulation/simulator_graph.h",
            "gdp_grappler/evaluation/simulation/simulator_cards.h",
            "gdp_grappler/evaluation/simulation/simulator_host.h",
            "gdp_grappler/evaluation/simulation/simulator_machine.h",
            "gdp_grappler/evaluation/simulation/simulator_memory.h",
            "gdp_grappler/evaluation/simulation/simulator_queues.h",
            "gdp_grappler/evaluation/simulation/simulator_units.h",
            "gdp_grappler/workers.h",
        ],
        "copts": ["-std=c++17", "-O3", "-pthread"],
        "defines": [],
        "linkopts": ["-pthread"],
        "tensorflow": False,
    },
    # Moves of a search: how they are drawn, and their features.
    "libgdp_moves.so": {
        "srcs": [
            "gdp_grappler/features/moves/move_features.cc",
            "gdp_grappler/placers/search/moves/move_drawer.cc",
        ],
        "hdrs": [
            "gdp_grappler/features/moves/move_candidates.h",
            "gdp_grappler/features/moves/move_graph.h",
            "gdp_grappler/features/moves/move_incumbent.h",
            "gdp_grappler/features/moves/move_retiming.h",
            "gdp_grappler/features/moves/move_ties.h",
            "gdp_grappler/features/moves/move_traffic.h",
            "gdp_grappler/placers/search/moves/move_drawer.h",
            "gdp_grappler/placers/search/moves/move_random.h",
            "gdp_grappler/placers/search/moves/move_sets.h",
            "gdp_grappler/placers/search/moves/coordinate_sets.h",
            "gdp_grappler/rows.h",
            "gdp_grappler/workers.h",
        ],
        "copts": ["-std=c++17", "-O3", "-pthread"],
        "defines": [],
        "linkopts": ["-pthread"],
        "tensorflow": False,
    },
    # Products of matrices. Sums and products are rounded separately, so that
    # all processors have equal results.
    "libgdp_products.so": {
        "srcs": ["gdp_grappler/products.cc"],
        "hdrs": [],
        "copts": ["-std=c++17", "-O3", "-ffp-contract=off"],
        "defines": [],
        "linkopts": [],
        "tensorflow": False,
    },
    # Emulated GPUs: emulating processes pass the path to TensorFlow.
    "libgdp_emulated_gpus.so": {
        "srcs": [
            "gdp_grappler/evaluation/emulation/clock.cc",
            "gdp_grappler/evaluation/emulation/emulated_gpus.cc",
            "gdp_grappler/evaluation/emulation/idleness.cc",
            "gdp_grappler/evaluation/emulation/kernel.cc",
            "gdp_grappler/evaluation/emulation/platform.cc",
        ],
        "hdrs": [
            "gdp_grappler/evaluation/emulation/clock.h",
            "gdp_grappler/evaluation/emulation/idleness.h",
            "gdp_grappler/evaluation/emulation/kernel.h",
            "gdp_grappler/evaluation/emulation/platform.h",
            "gdp_grappler/evaluation/emulation/timelines.h",
        ],
        "copts": ["-std=c++17", "-O2", "-pthread"],
        "defines": [],
        "linkopts": ["-pthread"],
        "tensorflow": True,
    },
    # Loaded into our own servers, so that they listen only on the loopback.
    "libgdp_loopback.so": {
        "srcs": ["gdp_grappler/evaluation/measuring/loopback.c"],
        "hdrs": [],
        "copts": ["-std=gnu11", "-O2"],
        "defines": [],
        "linkopts": ["-ldl"],
        "tensorflow": False,
    },
    # The list schedulers of the placers.
    "libgdp_list_scheduler.so": {
        "srcs": ["gdp_grappler/placers/list_scheduling/list_scheduler.cc"],
        "hdrs": [
            "gdp_grappler/placers/list_scheduling/earliest_task_first.h",
            "gdp_grappler/placers/list_scheduling/favourites.h",
            "gdp_grappler/placers/list_scheduling/fill.h",
            "gdp_grappler/placers/list_scheduling/schedule_state.h",
            "gdp_grappler/placers/list_scheduling/timeline.h",
            "gdp_grappler/rows.h",
        ],
        "copts": ["-std=c++17", "-O3"],
        "defines": [],
        "linkopts": [],
        "tensorflow": False,
    },
}
