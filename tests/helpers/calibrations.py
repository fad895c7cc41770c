"""Makes calibrations with invented figures."""

from __future__ import annotations

from gdp_grappler.cluster import calibration

H100 = 'NVIDIA H100 80GB HBM3'
FIGURES = (('empty_step_s', 20e-6), ('launching_op_s', 5e-6),
           ('other_op_s', 1e-6), ('small_kernel_s', 3e-6), ('gap_s', 2e-6),
           ('side_by_side_op_s', 2.5e-6), ('side_by_side_devices', 4.),
           ('hop_s', 40e-6), ('busy_hop_s', 70e-6), ('host_hop_s', 30e-6),
           ('copy_issue_s', 12e-6), ('to_device_bytes_per_s', 42e9),
           ('from_device_bytes_per_s', 41e9), ('between_devices_bytes_per_s',
                                               1.3e12))


def make(card: str = H100, device_type: str = 'GPU',
         kernels: tuple[tuple[str, float, float, float],
                        ...] = (('MatMul', 2e9, 12e6, 1e-4),),
         **figures: float) -> calibration.Calibration:
  """Returns a calibration with invented figures.

  Args:
    card: Name of the card.
    device_type: 'GPU' or 'CPU'.
    kernels: Op type, FLOPs, bytes and seconds of each kernel.
    **figures: Figures of the host; by default those of `FIGURES`.
  """
  return calibration.Calibration(
      card, '580.1', '2.21.0', device_type,
      tuple(figures.items()) or FIGURES,
      tuple(calibration.Kernel(*kernel) for kernel in kernels), ('ops',),
      ('MatMul, finer: no time left',))
