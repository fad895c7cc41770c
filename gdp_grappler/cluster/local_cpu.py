"""The cores that this process may use, as far as Linux tells.

A model of processor is known by the family and the model that /proc/cpuinfo
has of it, in virtual machines, too, where its name is often left out.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

from gdp_grappler import cores
from gdp_grappler.cluster import device_figures

# Of one core, where nobody tells.
_HERTZ, _SETS = 2.5e9, 'AVX2'
# What one core draws from memory, however much others leave it: 20 GB/s of the
# 205 of a socket (one core of an AMD EPYC of 2024; McCalpin, "STREAM", 1991
# onwards, has 12 to 25 for one thread of servers).
CORE_BYTES_PER_S = 20e9
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
  """What computes on the host.

  Attributes:
    cores: How many this process may use.
    hertz: Nominal clock; that of the moment would make each run another
      cluster.
    instruction_sets: Such as 'avx2 fma'.
    bandwidth_bytes_per_s: Of all these cores together.
    title: As the system calls it; '' if it does not.
    is_assumed: Whether nobody tells the clock.
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
  """Of this machine."""
  try:
    text = _CPUINFO.read_text(errors='replace')
  except OSError:
    text = ''
  return parse(text, cores.own())


def parse(text: str, count: int) -> Processor:
  """What /proc/cpuinfo tells of so many cores.

  Args:
    text: Of the file; '' where there is none.
    count: Cores that may be used.
  """
  fields = dict(re.findall(r'^([^\t\n:]+?)\s*:[ \t]*(.*)$', text, re.MULTILINE))
  hertz = _hertz(fields)
  chips = len(set(re.findall(r'^physical id\s*: (.*)$', text, re.MULTILINE)))
  title = ' '.join(fields.get('model name', '').split())
  return Processor(count, hertz or _HERTZ, fields.get('flags', _SETS),
                   _bandwidth(fields, count, max(1, chips)), title, hertz
                   is None)


def _hertz(fields: dict[str, str]) -> float | None:
  """By the name of the processor, else by its time stamp counter.

  That counts at the nominal clock; Linux calls twice as many millions of counts
  per second "bogomips".
  """
  named = re.search(r'@ *([\d.]+) *GHz', fields.get('model name', ''))
  if named:
    return float(named[1]) * 1e9
  counted = re.fullmatch(r'[\d.]+', fields.get('bogomips', ''))
  if counted and 'constant_tsc' in fields.get('flags', '').split():
    return round(float(counted[0]) / 2 * 1e6, -6) or None
  return None


def _bandwidth(fields: dict[str, str], count: int, chips: int) -> float:
  """Of its cores, as far as the chips that they are on have it."""
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
