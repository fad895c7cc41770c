"""The real binding against a library that answers like a small DGX.

Four cards: 0 and 1 share a PCIe switch and two bricks of NVLink, 2 and 3 hang
on an NVSwitch. Card 3 comes with a driver that does not know its bus width.
"""

import shutil
import subprocess

import pytest

from gdp_grappler.cluster import nvml

_SOURCE = r"""
#include <string.h>
typedef unsigned u;
static char cards[4];
static u card(void* h) { return (char*)h - cards; }
struct Pci { char legacy[16]; u domain, bus, device, id, sub; char text[32]; };
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(u* n) { *n = 4; return 0; }
int nvmlDeviceGetHandleByIndex_v2(u i, void** h) { *h = cards + i; return 0; }
int nvmlDeviceGetName(void* h, char* s, u n) {
  strncpy(s, "NVIDIA Test 9000", n); return 0; }
int nvmlDeviceGetUUID(void* h, char* s, u n) {
  strncpy(s, "GPU-a", n); s[4] += card(h); return 0; }
int nvmlDeviceGetMemoryInfo(void* h, unsigned long long* m) {
  m[0] = 1ULL << 33; m[1] = 1; m[2] = 2; return 0; }
int nvmlDeviceGetNumGpuCores(void* h, u* n) { *n = 1000; return 0; }
int nvmlDeviceGetMaxClockInfo(void* h, u clock, u* mhz) {
  *mhz = clock == 1 ? 1500 : clock == 2 ? 800 : 0; return 0; }
int nvmlDeviceGetMemoryBusWidth(void* h, u* bits) {
  *bits = 4096; return card(h) == 3 ? 3 : 0; }
int nvmlDeviceGetCudaComputeCapability(void* h, int* major, int* minor) {
  *major = 8; *minor = 6; return 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(void* h, u* n) { *n = 4; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(void* h, u* n) { *n = 16; return 0; }
int nvmlDeviceGetPciInfo_v3(void* h, struct Pci* p) {
  memset(p, 0, sizeof *p); p->bus = 10 + card(h); return 0; }
int nvmlDeviceGetNvLinkState(void* h, u link, u* on) {
  *on = link < 2; return link < 6 ? 0 : 2; }
int nvmlDeviceGetNvLinkRemoteDeviceType(void* h, u link, u* type) {
  *type = card(h) < 2 ? 0 : 2; return 0; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* h, u link, struct Pci* p) {
  memset(p, 0, sizeof *p); p->bus = 10 + (card(h) ^ 1); return 0; }
int nvmlDeviceGetTopologyCommonAncestor(void* a, void* b, u* level) {
  *level = card(a) / 2 == 0 && card(b) / 2 == 0 ? 10 : 50; return 0; }
"""


@pytest.fixture(name='cards', scope='module')
def _cards(tmp_path_factory):
  compiler = shutil.which('gcc')
  if compiler is None:
    pytest.skip('needs gcc')
  folder = tmp_path_factory.mktemp('nvml')
  (folder / 'nvml.c').write_text(_SOURCE)
  library = folder / 'libnvidia-ml.so.1'
  subprocess.run([
      compiler, '-shared', '-fPIC', '-w', '-o',
      str(library),
      str(folder / 'nvml.c')
  ], check=True)
  return nvml.NvmlLibrary(str(library)).cards()


def test_figures_of_a_card(cards):
  first = cards[0]
  assert first.title == 'NVIDIA Test 9000' and first.uuid == 'GPU-a'
  assert first.memory_bytes == 1 << 33 and first.capability == (8, 6)
  assert (first.pcie_generation, first.pcie_lanes) == (4, 16)
  assert first.flops == 1000 * 1.5e9 * 2
  assert first.bandwidth_bytes_per_s == 512 * 8e8 * 2


def test_what_the_driver_does_not_know(cards):
  assert cards[3].bandwidth_bytes_per_s is None
  assert cards[3].flops == cards[0].flops


def test_connections(cards):
  assert [card.nvlinks for card in cards] == [{1: 2}, {0: 2}, {}, {}]
  assert [card.switch_nvlinks for card in cards] == [0, 0, 2, 2]
  assert [card.switch_neighbours for card in cards] == [(1,), (0,), (), ()]


@pytest.mark.parametrize('setting, expected', [(None, [0, 1, 2, 3]), ('', []),
                                               ('2,0', [2, 0]), ('1,7,0', [1]),
                                               ('GPU-c,1', [2, 1]), ('GPU', []),
                                               ('-1', []), ('3, 1', [3, 1])])
def test_visible_cards(cards, setting, expected, monkeypatch):
  if setting is None:
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
  else:
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', setting)
  assert nvml.visible(cards) == expected


def test_no_library(monkeypatch):
  monkeypatch.setattr(nvml, '_LIBRARY', 'no-such-library.so')
  with pytest.raises(OSError):
    nvml.NvmlLibrary('no-such-library.so')
  assert nvml.NoCards().cards() == []
