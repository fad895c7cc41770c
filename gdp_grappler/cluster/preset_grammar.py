"""The grammar of names of presets.

This module imports nothing heavy, because every command line imports it.
"""

from __future__ import annotations

from gdp_grappler.cluster import device_figures

MOST_CARDS = 16  # Largest number of cards per host.
MOST_HOSTS = 16  # Largest number of hosts.
# Largest number of logical GPUs of a card.
MOST_PARTS = 4
CPUS = {'cpu': 'broadwell', **{name: name for name in device_figures.CPUS}}
GRAMMAR = (
    '[HOSTSx]HOST[-NETWORK], HOST = [COUNTx]CARD[:PARTS][+...] or a processor, '
    f'such as 2xP100, 8xV100, 1xH100:2, 2xP100+2xK40, cpu, 2x8xV100-ib; cards: '
    f'{", ".join(device_figures.CARDS)}, 1 to {MOST_CARDS} per host, each '
    f'cut into up to {MOST_PARTS} logical GPUs, up '
    f'to {MOST_HOSTS} hosts; processors: {", ".join(CPUS)}; networks: '
    f'{", ".join(device_figures.NETWORKS)}')
