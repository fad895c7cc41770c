"""Cluster files with TensorFlow's messages, as JSON or protobuf text.

The file is one message. It has a `NamedDevice` for each device, and the links,
for which TensorFlow has no message.

    name: "two cards"
    devices {
      name: "/job:localhost/replica:0/task:0/device:CPU:0"
      properties { type: "CPU" frequency: 2600 num_cores: 14
                   memory_size: 274877906944 bandwidth: 76800000
                   environment { key: "cpu_instruction_set" value: "AVX2" } }
    }
    devices {
      name: "GPU:0"
      properties { type: "GPU" frequency: 1303 num_cores: 56
                   memory_size: 17179869184 bandwidth: 732000000
                   environment { key: "architecture" value: "6.0" } }
    }
    links { source: "CPU:0" target: "GPU:0" latency_s: 1e-5
            bandwidth_bytes_per_s: 12e9 channels: "GPU:0 in" }
    default_link { latency_s: 1e-5 bandwidth_bytes_per_s: 12e9 }
    step_s: 0

`default_link` is the link of every pair that `links` leaves out. Links with a
common channel take turns. A link without channels gets two: "SENDER out" and
"RECEIVER in".

Units are TensorFlow's: MHz, bytes, kB/s. Rates are computed from them as in
Grappler's `OpLevelCostEstimator::GetDeviceInfo` (see `clock_rates`). Entries of
`environment` override fields of `cluster.Device`: peak_flops, efficiency,
bandwidth_bytes_per_s and launch_s, all per slot; slots; copy_s and
copy_bytes_per_s; launch and the host's times (`validation.HOST_TIMES`);
compute, memory, context and card; resident_threads; memory_margin; the rates of
other dense kernels (`validation.TYPE_RATES`). GPUs are asynchronous unless
`launch` says otherwise.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Sequence

from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import json_format
from google.protobuf import message_factory
from google.protobuf import text_format
from tensorflow.core.protobuf import device_properties_pb2

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler import text_protos
from gdp_grappler.cluster import clock_rates
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_json
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import type_rates
from gdp_grappler.cluster import validation

_FIELDS = descriptor_pb2.FieldDescriptorProto
_NUMBERS = ('peak_flops', 'efficiency', 'bandwidth_bytes_per_s', 'launch_s',
            'slots', 'copy_s', 'copy_bytes_per_s', 'memory_margin',
            'resident_threads', *validation.HOST_TIMES, *validation.TYPE_RATES)
_OURS = _NUMBERS + ('compute', 'memory', 'context', 'card', 'launch')
# Grappler's bandwidth of a device without this figure, in bytes/s.
_UNTOLD_BANDWIDTH = {'CPU': 32e9, 'GPU': 100e9}


def from_text(text: str, origin: str) -> cluster_lib.Cluster:
  """Reads protobuf text.

  Args:
    text: Text in the format of the module's docstring.
    origin: Path or other origin of the text, for the error message.

  Raises:
    ClusterError: the text is not protobuf text, or a field is wrong.
  """
  try:
    message = text_protos.parse(text, _message_class()())
  except ValueError as error:
    raise cluster_json.not_a_cluster_file(origin,
                                          errors.one_line(error)) from error
  return _read(message, origin)


def from_json(fields: dict[str, Any], origin: str) -> cluster_lib.Cluster:
  """Reads the same message as JSON, as `json_format.MessageToDict` writes it.

  Args:
    fields: The parsed JSON.
    origin: Path or other origin of the JSON, for the error message.

  Raises:
    ClusterError: a field is wrong.
  """
  try:
    message = json_format.ParseDict(fields, _message_class()())
  except json_format.ParseError as error:
    raise cluster_json.not_a_cluster_file(origin,
                                          errors.one_line(error)) from error
  return _read(message, origin)


def to_text(cluster: cluster_lib.Cluster) -> str:
  """The cluster as protobuf text, from which `from_text` makes the same one."""
  message = _message_class()(name=cluster.name, step_s=cluster.step_s,
                             notes=cluster.notes)
  for device in cluster.devices:
    properties = device_properties_pb2.DeviceProperties(
        type=device.type, memory_size=int(device.memory_bytes),
        bandwidth=round(device.bandwidth_bytes_per_s * device.slots / 1e3))
    for key in _OURS:
      if getattr(device, key) is not None:
        properties.environment[key] = str(getattr(device, key))
    message.devices.add(name=device.name).properties.CopyFrom(properties)
  for link in cluster.links:
    message.links.add(**dataclasses.asdict(link))
  return text_format.MessageToString(message)


@functools.cache
def _message_class() -> type[Any]:
  """The class of the file's message, made here to avoid a compiled .proto."""
  file = descriptor_pb2.FileDescriptorProto(
      name='gdp_grappler/cluster.proto', package='gdp_grappler',
      syntax='proto2', dependency=[device_properties_pb2.DESCRIPTOR.name])
  link = file.message_type.add(name='Link')
  _add(link, ('source', 'target'), _FIELDS.TYPE_STRING)
  _add(link, ('latency_s', 'bandwidth_bytes_per_s'), _FIELDS.TYPE_DOUBLE)
  _add(link, ('channels',), _FIELDS.TYPE_STRING, repeated=True)
  cluster = file.message_type.add(name='Cluster')
  _add(cluster, ('name',), _FIELDS.TYPE_STRING)
  _add(cluster, ('devices',), '.tensorflow.NamedDevice', repeated=True)
  _add(cluster, ('links',), '.gdp_grappler.Link', repeated=True)
  _add(cluster, ('default_link',), '.gdp_grappler.Link')
  _add(cluster, ('step_s',), _FIELDS.TYPE_DOUBLE)
  _add(cluster, ('notes',), _FIELDS.TYPE_STRING, repeated=True)
  pool = descriptor_pool.Default()
  pool.AddSerializedFile(file.SerializeToString())
  return message_factory.GetMessageClass(
      pool.FindMessageTypeByName('gdp_grappler.Cluster'))


def _add(message: descriptor_pb2.DescriptorProto, names: Sequence[str],
         kind: int | str, repeated: bool = False) -> None:
  """Adds fields of one type; `kind` is a message's name or a scalar type."""
  for name in names:
    field = message.field.add(
        name=name, number=len(message.field) + 1,
        label=_FIELDS.LABEL_REPEATED if repeated else _FIELDS.LABEL_OPTIONAL)
    if isinstance(kind, str):
      field.type, field.type_name = _FIELDS.TYPE_MESSAGE, kind
    else:
      field.type = kind


def _read(message: Any, origin: str) -> cluster_lib.Cluster:
  try:
    notes: list[str] = list(message.notes)
    devices = tuple(
        _device(f'devices[{i}]', named, notes)
        for i, named in enumerate(message.devices))
    links: dict[tuple[str, str], cluster_lib.Link] = {}
    for index, link in enumerate(message.links):
      ends = (cluster_json.full_name(f'links[{index}].source', link.source),
              cluster_json.full_name(f'links[{index}].target', link.target))
      if ends in links:
        raise errors.ClusterError(f'links[{index}]: the link {ends[0]} -> '
                                  f'{ends[1]} is listed twice; remove one.')
      links[ends] = _link(f'links[{index}]', link, *ends)
    if message.HasField('default_link'):
      _add_default_links(message.default_link, devices, links)
    return cluster_lib.Cluster(message.name or origin, devices,
                               tuple(links.values()), message.step_s,
                               tuple(notes))
  except errors.ClusterError as error:
    raise errors.ClusterError(f'{origin}: {error}') from error


def _add_default_links(default: Any, devices: tuple[cluster_lib.Device, ...],
                       links: dict[tuple[str, str], cluster_lib.Link]) -> None:
  for field in ('source', 'target'):
    if default.HasField(field):
      raise errors.ClusterError(f'default_link.{field} is '
                                f'"{getattr(default, field)}"; leave it out.')
  # This check comes first, so that errors name the field of the file.
  validation.check_link('default_link',
                        _link('default_link', default, 'one', 'another'))
  for source in devices:
    for target in devices:
      ends = source.name, target.name
      if source is not target and ends not in links:
        links[ends] = _link('default_link', default, *ends)


def _link(at: str, link: Any, source: str, target: str) -> cluster_lib.Link:
  for field in ('latency_s', 'bandwidth_bytes_per_s'):
    if not link.HasField(field):
      raise errors.ClusterError(f'{at}.{field} is missing; add it.')
  here = cluster_lib.local_name('', 0).removesuffix(':0')
  channels = tuple(link.channels) or (f'{source.removeprefix(here)} out',
                                      f'{target.removeprefix(here)} in')
  return cluster_lib.Link(source, target, link.latency_s,
                          link.bandwidth_bytes_per_s, channels)


def _device(at: str, named: device_properties_pb2.NamedDevice,
            notes: list[str]) -> cluster_lib.Device:
  name = cluster_json.full_name(f'{at}.name', named.name)
  properties = named.properties
  if properties.type not in ('CPU', 'GPU'):
    raise errors.ClusterError(f'{at}.properties.type is "{properties.type}"; '
                              'give "CPU" or "GPU".')
  if properties.type != cluster_lib.device_type(name):
    raise errors.ClusterError(
        f'{at}.properties.type is "{properties.type}", but the name says '
        f'"{cluster_lib.device_type(name)}"; change one of them.')
  own = _environment(f'{at}.properties.environment', properties.environment)
  is_cpu = properties.type == 'CPU'
  slots = own.pop('slots', device_figures.SLOTS_PER_SOCKET if is_cpu else 1)
  if not float(slots).is_integer() or slots < 1:
    raise errors.ClusterError(f'{at}.properties.environment["slots"] is '
                              f'{slots}; give a whole number, 1 or more.')
  capability = None if is_cpu or 'peak_flops' in own else _clocked_capability(
      at, properties)
  if 'peak_flops' not in own:
    flops = _cpu_flops if is_cpu else _gpu_flops
    own['peak_flops'] = flops(at, properties, notes) / slots
  if 'bandwidth_bytes_per_s' not in own:
    own['bandwidth_bytes_per_s'] = _bandwidth(at, properties, notes) / slots
  own.setdefault(
      'efficiency', device_figures.CPU_EFFICIENCY
      if is_cpu else device_figures.GPU_EFFICIENCY)
  own.setdefault(
      'launch_s',
      device_figures.CPU_LAUNCH_S if is_cpu else device_figures.GPU_LAUNCH_S)
  if not is_cpu:
    card = device_figures.card_of(properties.model)
    if capability:  # The peak follows from clocks, not from a data sheet.
      rates = type_rates.of_capability(capability)
    else:
      rates = type_rates.of_card(card.name) if card else {}
    own = device_figures.CARD_LAUNCH | rates | own
  threads = own.get('resident_threads', 0)
  if float(threads).is_integer():
    own['resident_threads'] = int(threads)
  own.setdefault('compute', name)
  own.setdefault('memory', name)
  if properties.memory_size <= 0:
    raise errors.ClusterError(f'{at}.properties.memory_size is '
                              f'{properties.memory_size}; give bytes.')
  return cluster_lib.Device(name=name, type=properties.type, slots=int(slots),
                            memory_bytes=properties.memory_size, **own)


def _environment(at: str, environment: Any) -> dict[str, Any]:
  """Entries for fields of `cluster.Device`, without TensorFlow's own entries.

  A misspelt entry is an error.
  """
  result: dict[str, Any] = {}
  for key, value in environment.items():
    if key in _NUMBERS:
      try:
        result[key] = float(value)
      except ValueError as error:
        raise errors.ClusterError(
            f'{at}["{key}"] is "{value}"; give a number.') from error
    elif key in _OURS:
      result[key] = value
    elif hint := suggestions.did_you_mean(key, _OURS, .8):
      raise errors.ClusterError(f'{at}["{key}"] is unknown.{hint}')
  return result


def _gpu_flops(at: str, properties: device_properties_pb2.DeviceProperties,
               notes: list[str]) -> float:
  """FLOP/s by clock and lanes, else by the data sheet of the named card."""
  _check_clock(at, properties)
  capability = _clocked_capability(at, properties)
  if capability:
    return clock_rates.gpu_flops(properties.num_cores,
                                 properties.frequency * 1e6, capability)
  card = device_figures.card_of(properties.model)
  if card is not None:
    notes.append(f'{at}: peak_flops from the data sheet of {card.name}.')
    return card.peak_flops
  raise errors.ClusterError(
      f'{at}.properties lacks num_cores, frequency (MHz) or '
      'environment["architecture"], which give its FLOP/s; add them or '
      'environment["peak_flops"].')


def _clocked_capability(
    at: str, properties: device_properties_pb2.DeviceProperties
) -> tuple[int, int] | None:
  """Compute capability; None if the file lacks it, the clock or the cores."""
  architecture = properties.environment.get('architecture', '')
  if not (properties.num_cores and properties.frequency and architecture):
    return None
  major, _, minor = architecture.partition('.')
  if not major.isdigit() or not minor.isdigit():
    raise errors.ClusterError(
        f'{at}.properties.environment["architecture"] is "{architecture}"; '
        'give a compute capability such as "6.0".')
  return int(major), int(minor)


def _cpu_flops(at: str, properties: device_properties_pb2.DeviceProperties,
               notes: list[str]) -> float:
  _check_clock(at, properties)
  if not properties.num_cores or not properties.frequency:
    raise errors.ClusterError(
        f'{at}.properties lacks num_cores or frequency (MHz), which give its '
        'FLOP/s; add them or environment["peak_flops"].')
  sets = properties.environment.get('cpu_instruction_set', '')
  if not sets:
    notes.append(f'{at}: one operation per core and cycle, as Grappler counts, '
                 'because environment["cpu_instruction_set"] is not given.')
  return clock_rates.cpu_flops(properties.num_cores, properties.frequency * 1e6,
                               sets)


def _check_clock(at: str,
                 properties: device_properties_pb2.DeviceProperties) -> None:
  for field, unit in (('num_cores', 'how many'), ('frequency', 'MHz')):
    value = getattr(properties, field)
    if value < 0:
      raise errors.ClusterError(
          f'{at}.properties.{field} is {value}; give {unit}.')


def _bandwidth(at: str, properties: device_properties_pb2.DeviceProperties,
               notes: list[str]) -> float:
  if properties.bandwidth < 0:
    raise errors.ClusterError(f'{at}.properties.bandwidth is '
                              f'{properties.bandwidth}; give kB/s.')
  if properties.bandwidth == 0:
    default = _UNTOLD_BANDWIDTH[properties.type]
    notes.append(f'{at}: {default / 1e9:g} GB/s of memory, as Grappler takes '
                 'where bandwidth is not given.')
    return default
  return properties.bandwidth * 1e3
