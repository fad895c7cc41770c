"""The addresses on which this process listens."""

from __future__ import annotations

import ipaddress
import os
import pathlib
import sys

# The state of a listening socket in /proc/net/tcp.
_LISTEN = '0A'
# Column of that file with the address of the socket.
_ADDRESS = 1
_STATE = 3  # Column with the state of the socket.
_INODE = 9  # Column with the inode of the socket.


def outside_loopback() -> list[str]:
  """'address:port' of each socket that other machines can connect to.

  Only TCP sockets count, because gRPC uses no others.
  """
  inodes = _sockets()
  found = []
  for table in ('tcp', 'tcp6'):
    path = pathlib.Path('/proc/self/net', table)
    for line in path.read_text().splitlines()[1:] if path.exists() else ():
      fields = line.split()
      if fields[_STATE] == _LISTEN and fields[_INODE] in inodes:
        address, port = fields[_ADDRESS].split(':')
        if not _is_loopback(bytes.fromhex(address)):
          found.append(f'{_address(bytes.fromhex(address))}:{int(port, 16)}')
  return found


def _sockets() -> set[str]:
  """Inodes of all sockets of this process."""
  inodes = set()
  for descriptor in os.scandir('/proc/self/fd'):
    try:
      target = os.readlink(descriptor.path)
    except FileNotFoundError:  # This descriptor listed the folder.
      continue
    if target.startswith('socket:['):
      inodes.add(target[len('socket:['):-1])
  return inodes


def _address(words: bytes) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
  """Address of 4 or 16 bytes, in words of 4 bytes in this machine's order."""
  ordered = b''.join(
      int.from_bytes(words[i:i + 4], 'big').to_bytes(4, sys.byteorder)
      for i in range(0, len(words), 4))
  return ipaddress.ip_address(ordered)


def _is_loopback(words: bytes) -> bool:
  address = _address(words)
  if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
    return address.ipv4_mapped.is_loopback
  return address.is_loopback
