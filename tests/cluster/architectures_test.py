"""Tests of `architectures`."""

import dataclasses

import pytest

from gdp_grappler.cluster import architectures
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import presets


@pytest.mark.parametrize('name, architecture', [('2xP100', '6.0'),
                                                ('8xV100', '7.0'),
                                                ('haswell+2xK40', '3.5'),
                                                ('2x8xA100-ib200', '8.0'),
                                                ('1xH100', '9.0'),
                                                ('1xA10G', '8.6'),
                                                ('1xMI300X', 'gfx942'),
                                                ('2xP100+2xK40', '6.0'),
                                                ('cpu', ''),
                                                ('4xcpu-eth10', '')])
def test_presets_have_that_of_their_first_card(name, architecture):
  assert architectures.of(presets.preset(name)) == architecture


@pytest.mark.parametrize('card', device_figures.CARDS)
def test_every_card_has_one(card):
  assert card in architectures._ARCHITECTURES


def test_other_cards_are_taken_for_recent_ones():
  unnamed = dataclasses.replace(presets.preset('2xP100'), name='ours')
  assert architectures.of(unnamed) == '8.0'
