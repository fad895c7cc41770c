"""Graphs that a pass received on a machine with a GPU."""

from __future__ import annotations

import gzip
import pathlib

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import origin
from gdp_grappler.graph.sources import sources

_FOLDER = pathlib.Path(__file__).parents[1] / 'testdata' / 'h100'
NAMES = tuple(sorted(p.name.split('.')[0] for p in _FOLDER.glob('*.pb.gz')))


def unpacked(name: str, folder: pathlib.Path) -> pathlib.Path:
  """Unpacks the graph of one of `NAMES` to a file."""
  path = folder / f'{name}.pb'
  path.write_bytes(gzip.decompress((_FOLDER / f'{name}.pb.gz').read_bytes()))
  return path


def source(name: str, folder: pathlib.Path) -> source_graph.SourceGraph:
  """Reads the graph of one of `NAMES`."""
  return sources.read(origin.Origin(str(unpacked(name, folder))))
