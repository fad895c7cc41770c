"""Step times that the papers' authors measured, for comparison with ours.

They are seconds per step, on the authors' machines and with their TensorFlow.
"""

from __future__ import annotations

OOM = 'OOM'
# Zhou et al., "Transferable Graph Optimizers for ML Compilers", NeurIPS 2020, a
# later table by GDP's authors for the same tasks: task -> learned (GO-one),
# human, METIS, HDP, search speed-up over HDP.
GO: dict[str, tuple[float, float, float | str, float, float]] = {
    'rnnlm-2@2xP100': (.173, .192, .355, .191, 2.95),
    'rnnlm-4@4xP100': (.210, .239, .503, .251, 1.76),
    'rnnlm-8@8xP100': (.320, .332, OOM, .764, 27.8),
    'gnmt-2@2xP100': (.301, .384, .344, .327, 30.),
    'gnmt-4@4xP100': (.350, .469, .466, .432, 58.8),
    'gnmt-8@8xP100': (.440, .562, OOM, .693, 7.35),
    'transformer-xl-2@2xP100': (.223, .268, .37, .262, 40.),
    'transformer-xl-4@4xP100': (.230, .27, OOM, .259, 26.7),
    'transformer-xl-8@8xP100': (.350, .46, OOM, .425, 16.7),
    'inception-v3-b32@2xP100': (.229, .312, OOM, .301, 13.5),
    'inception-v3-b64@2xP100': (.423, .731, OOM, .498, 21.),
    'amoebanet@4xP100': (.394, .44, .426, .418, 58.8),
    'wavenet-2x18@2xP100': (.317, .376, OOM, .354, 6.67),
    'wavenet-4x36@4xP100': (.659, .988, OOM, .721, 20.),
}
# Mirhoseini et al., "A Hierarchical Model for Device Placement", ICLR 2018,
# table 1: task -> GPU only, human, Scotch, MinCut, HDP.
HDP: dict[str, tuple[float | str, float, float, float, float]] = {
    'inception-v3-b32@2xK40': (.15, .15, .93, .82, .13),
    'resnet-50@2xK40': (1.18, 1.18, 6.27, 2.92, 1.18),
    'rnnlm-2@2xK40': (1.57, 1.57, 5.62, 5.21, 1.57),
    'nmt-2@2xK40': (OOM, 2.13, 3.21, 5.34, .84),
    'nmt-4@4xK40': (OOM, 3.64, 11.18, 11.63, 1.69),
    'nmt-8@8xK40': (OOM, 3.88, 17.85, 19.01, 4.07),
}
