"""A cluster of logical CPUs with small memories."""

import dataclasses

from gdp_grappler.cluster import connected_devices


def write(folder, host_bytes, card_bytes):
  """Writes a cluster of CPU:0, the host, and two cards with small memories."""
  cluster = connected_devices.local_cluster(
      [f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(3)])
  devices = [
      dataclasses.replace(device, memory=device.name, compute=device.name,
                          memory_bytes=size, memory_margin=0.)
      for device, size in zip(cluster.devices, (host_bytes, card_bytes,
                                                card_bytes))
  ]
  path = folder / 'small.json'
  path.write_text(dataclasses.replace(cluster, devices=devices).to_json())
  return str(path)
