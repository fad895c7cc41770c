"""Every module has its tests where one looks for them."""

import pathlib

_TOP = pathlib.Path(__file__).parents[2]
_TESTS = _TOP / 'tests'
# Modules that hold names, fields or texts alone: there is nothing to run.
_NOTHING_TO_RUN = frozenset({
    'cluster/preset_grammar', 'evaluation/simulation/schedule',
    'graph/assumptions', 'placers/policy/policy_config',
    'placers/search/search_config', 'placers/placer', 'plugin/outcome',
    'problems/help_texts', 'problems/rewards', 'workloads/workload'
})
# Modules whose tests are about more than one: what runs in a process of its
# own, by the test of who starts it; commands, by what a user types; models of
# one kind; and the plugin, in programs that load it.
_ELSEWHERE = dict(line.split() for line in """
__main__ bin/starting_test
api/placed_step api/placing_test
api/subjects api/models_test
api/verify_programs api/verifying_test
bin/commands/diff bin/gdp_explain_test
bin/commands/explain bin/gdp_explain_test
bin/commands/glossary reports/glossary_test
bin/commands/place bin/gdp_order_test
bin/commands/report api/reporting_test
bin/commands/show bin/gdp_show_test
bin/commands/simulate bin/gdp_given_test
bin/commands/verify api/verifying_test
evaluation/costs/cost_model contracts/cost_model_contract_test
evaluation/calibrating/calibrating_worker evaluation/calibrating/calibrator_test
evaluation/calibrating/card evaluation/calibrating/calibrator_test
evaluation/calibrating/exchange evaluation/calibrating/calibrator_test
evaluation/calibrating/inputs evaluation/calibrating/suite_test
evaluation/calibrating/kernel_times evaluation/calibrating/host_figures_test
evaluation/emulation/emulation_worker evaluation/emulation/emulator_test
evaluation/emulation/native_gpus evaluation/emulation/emulator_test
evaluation/measuring/local_server evaluation/measuring/local_workers_test
evaluation/measuring/measure_config evaluation/measuring/measuring_targets_test
evaluation/measuring/session_config evaluation/measuring/measurer_test
evaluation/ordering/edge_search evaluation/ordering/control_edges_test
evaluation/profiling/contention_worker evaluation/profiling/contention_test
placers/placer_table placers/registry_test
placers/plans/misfits placers/plans/planned_test
placers/list_scheduling/heft placers/list_scheduling/placers_test
bin/placer_docs hygiene/repository_test
placers/partitioning/min_cut placers/partitioning/scotch_test
placers/partitioning/mt_kahypar_worker placers/partitioning/mt_kahypar_test
placers/partitioning/partition_process placers/partitioning/partitioning_test
placers/partitioning/scotch_worker placers/partitioning/scotch_test
placers/policy/policy_check placers/policy/learned_test
placers/policy/shipped_policy placers/registry_test
processes/jobs processes/local_team_test
plugin/fitting/variable_moves e2e/relocated_test
plugin/server_link_timing e2e/hosts_test
plugin/sessions e2e/v1_program_test
reports/colors reports/page_data_test
reports/live_bar placer_model/training/progress_test
reports/page api/reporting_test
reports/timeline_image reports/tensorboard_test
reports/trace_links reports/timeline_test
reports/trace_tracks reports/timeline_test
workloads/amoebanet workloads/cnn_test
workloads/capture_worker workloads/capture_test
workloads/gnmt workloads/rnn_workloads_test
workloads/inception workloads/cnn_test
workloads/nmt workloads/rnn_workloads_test
workloads/resnet workloads/cnn_test
workloads/rnnlm workloads/rnn_workloads_test
workloads/synthetic/builder workloads/synthetic/gradients_test
workloads/synthetic/clusters workloads/synthetic/synthetic_test
workloads/synthetic/families workloads/synthetic/synthetic_test
workloads/synthetic/planting workloads/synthetic/synthetic_test
placer_model/benchmark/gantt placer_model/benchmark/pictures_test
placer_model/benchmark/loader placer_model/bin/gdp_bench_test
placer_model/benchmark/loading_worker placer_model/bin/gdp_bench_test
placer_model/benchmark/runner placer_model/bin/gdp_bench_test
placer_model/bin/command_line placer_model/bin/gdp_bench_test
placer_model/pretraining/pretrain_config placer_model/pretraining/run_test
placer_model/pretraining/searches placer_model/pretraining/run_test
placer_model/training/references placer_model/training/run_test
placer_model/hdp/feed_forward placer_model/hdp/networks_test
placer_model/hdp/grouper placer_model/hdp/networks_test
placer_model/hdp/policy placer_model/hdp/networks_test
placer_model/hdp/seq2seq placer_model/hdp/networks_test
placer_model/hdp/weights placer_model/hdp/networks_test
""".strip().splitlines())


def _modules() -> list[str]:
  """As their tests are called, without `_test`."""
  own = _TOP / 'gdp_grappler'
  paths = [path.relative_to(own) for path in own.rglob('*.py')]
  paths += [
      path.relative_to(_TOP) for path in (_TOP / 'placer_model').rglob('*.py')
  ]
  return sorted(
      str(path.with_suffix('')) for path in paths if path.stem != '__init__')


def _has_mirror(module: str) -> bool:
  return (_TESTS / f'{module}_test.py').exists()


def test_a_module_is_tested_in_one_known_place():
  places = {
      module: (_has_mirror(module), module in _ELSEWHERE, module
               in _NOTHING_TO_RUN) for module in _modules()
  }
  assert not [module for module, each in places.items() if sum(each) != 1], (
      'Give each a test at tests/MODULE_test.py, or say in this file why not.')


def test_the_places_elsewhere_are_there():
  assert not [t for t in _ELSEWHERE.values() if not _has_mirror(t[:-5])]


def test_nothing_is_said_of_modules_that_are_gone():
  assert _NOTHING_TO_RUN | set(_ELSEWHERE) <= set(_modules())
