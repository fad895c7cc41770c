"""The plugin's modules import each other in one direction.

Imports inside functions count, too. The imports are late because most programs
need no part of the plugin, and not because two modules need each other.
"""

import graphlib

import grimp


def test_no_circle():
  graph = grimp.build_graph('gdp_grappler', cache_dir=None)
  modules = graph.find_descendants('gdp_grappler.plugin')
  assert {'gdp_grappler.plugin.hook', 'gdp_grappler.plugin.host'} <= modules
  graphlib.TopologicalSorter({
      module: graph.find_modules_directly_imported_by(module) & modules
      for module in modules
  }).prepare()
