"""The cores that this process may use, as Linux describes them.

A model of processor is recognized by the family and the model number in
/proc/cpuinfo. Virtual machines have these numbers, too, while the name is often
missing there.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

from gdp_grappler import cores
from gdp_grappler.cluster import device_figures

# Assumed clock rate if Linux does not give it.
_HERTZ = 2.5e9
# Assumed instruction sets if Linux does not give them.
_SETS = 'AVX2'
# Memory bandwidth that a single core can use: 20 GB/s of the 205 of a socket
# (one core of an AMD EPYC of 2024; McCalpin, "STREAM", 1991 onwards, has 12 to
# 25 for one thread of servers).
CORE_BYTES_PER_S = 20e9
# Two CPU devices of one process pass a tensor's pointer through the rendezvous.
# Both figures of this transfer are assumed.
SAME_PROCESS_S = 5e-6
SAME_PROCESS_BYTES_PER_S = 1e12
# Vendor, family and model -> key of `device_figures.CPUS`.
_MODELS = {
    ('GenuineIntel', 6, 63): 'haswell',
    ('GenuineIntel', 6, 79): 'broadwell',
    ('GenuineIntel', 6, 85): 'cascadelake',
    ('GenuineIntel', 6, 143): 'sapphire2',
    ('GenuineIntel', 6, 207): 'emerald2',
    ('GenuineIntel', 6, 173): 'granite2',
    ('AuthenticAMD', 23, 49): 'rome',
    ('AuthenticAMD', 25, 1): 'milan',
    ('AuthenticAMD', 25, 17): 'genoa2',
    ('AuthenticAMD', 26, 2): 'turin2',
}
_CPUINFO = pathlib.Path('/proc/cpuinfo')


@dataclasses.dataclass(frozen=True)
class Processor:
  """The processor of the host.

  Attributes:
    cores: Number of cores that this process may use.
    hertz: Nominal clock. The current clock would make the cluster differ from
      run to run.
    instruction_sets: Names of instruction sets, such as 'avx2 fma'.
    bandwidth_bytes_per_s: Memory bandwidth of all these cores together.
    title: Name that the system reports; '' if it reports none.
    is_assumed: Whether the clock is assumed, because it is unknown.
  """

  cores: int
  hertz: float
  instruction_sets: str
  bandwidth_bytes_per_s: float
  title: str
  is_assumed: bool

  def describe(self) -> str:
    """'2 cores of 2.45 GHz (AMD EPYC)'."""
    said = 'core' if self.cores == 1 else 'cores'
    title = f' ({self.title})' if self.title else ''
    return f'{self.cores} {said} of {self.hertz / 1e9:.3g} GHz{title}'


def processor() -> Processor:
  """The processor of this machine."""
  try:
    text = _CPUINFO.read_text(errors='replace')
  except OSError:
    text = ''
  return parse(text, cores.own())


def parse(text: str, count: int) -> Processor:
  """Reads /proc/cpuinfo.

  Args:
    text: Text of the file; '' if there is no file.
    count: Number of cores that may be used.
  """
  fields = dict(re.findall(r'^([^\t\n:]+?)\s*:[ \t]*(.*)$', text, re.MULTILINE))
  hertz = _hertz(fields)
  chips = len(set(re.findall(r'^physical id\s*: (.*)$', text, re.MULTILINE)))
  title = ' '.join(fields.get('model name', '').split())
  return Processor(count, hertz or _HERTZ, fields.get('flags', _SETS),
                   _bandwidth(fields, count, max(1, chips)), title, hertz
                   is None)


def _hertz(fields: dict[str, str]) -> float | None:
  """Nominal clock, by the processor's name or by its time stamp counter.

  The counter runs at the nominal clock. Linux's "bogomips" are twice the
  millions of counts per second.
  """
  named = re.search(r'@ *([\d.]+) *GHz', fields.get('model name', ''))
  if named:
    return float(named[1]) * 1e9
  counted = re.fullmatch(r'[\d.]+', fields.get('bogomips', ''))
  if counted and 'constant_tsc' in fields.get('flags', '').split():
    return round(float(counted[0]) / 2 * 1e6, -6) or None
  return None


def _bandwidth(fields: dict[str, str], count: int, chips: int) -> float:
  """Bandwidth of the cores, at most that of their chips."""
  try:
    model = (fields['vendor_id'], int(fields['cpu family']),
             int(fields['model']))
  except (KeyError, ValueError):
    return count * CORE_BYTES_PER_S
  of_cores = count * CORE_BYTES_PER_S
  if model not in _MODELS:
    return of_cores
  chip = device_figures.CPUS[_MODELS[model]].bandwidth_bytes_per_s
  return min(of_cores, chips * chip)
