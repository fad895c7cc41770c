"""Tests of gdp_grappler.suggestions."""

import pytest

from gdp_grappler import suggestions

_KNOWN = ('metis', 'min_cut', 'VGG16', 'VGG19')


@pytest.mark.parametrize('name,near', [('mets', ['metis']),
                                       ('vgg16', ['VGG16']), ('xyz', []),
                                       ('', [])])
def test_the_nearest_name(name, near):
  assert suggestions.nearest(name, _KNOWN) == near


def test_as_many_as_asked_for():
  assert suggestions.nearest('vgg1', _KNOWN, most=3) == ['VGG19', 'VGG16']
  assert len(suggestions.nearest('vgg1', _KNOWN)) == 1


def test_as_similar_as_asked_for():
  # 5 of 6 + 5 letters are the same: 10 / 11.
  assert suggestions.nearest('mettis', ['metis'], similarity=.9) == ['metis']
  assert suggestions.nearest('mettis', ['metis'], similarity=.92) == []


def test_what_was_meant_comes_first_and_the_rest_is_short():
  many = [f'placer{i}' for i in range(40)]
  said = suggestions.unknown('placer', 'plaser7', many, 'gdp place --help')
  assert said == ('Unknown placer "plaser7". Did you mean "placer7"? All 40: '
                  'gdp place --help.')
  said = suggestions.unknown('placer', 'xyz', many, 'gdp place --help')
  assert said == ('Unknown placer "xyz". There are placer0, placer1, placer2, '
                  '...; all 40: gdp place --help.')


def test_few_names_are_listed():
  said = suggestions.unknown('config', 'mets', _KNOWN, 'a page')
  assert said == ('Unknown config "mets". Did you mean "metis"? There are '
                  'metis, min_cut, VGG16, VGG19.')


def test_a_part_of_what_was_given_may_be_meant():
  said = suggestions.unknown('task', 'mets@2xP100', _KNOWN, meant='mets')
  assert said.startswith('Unknown task "mets@2xP100". Did you mean "metis"?')


def test_a_sentence_or_nothing():
  assert suggestions.did_you_mean('mets', _KNOWN) == ' Did you mean "metis"?'
  assert suggestions.did_you_mean('vgg1', _KNOWN,
                                  most=3) == ' Did you mean "VGG19" or "VGG16"?'
  assert suggestions.did_you_mean('xyz', _KNOWN) == ''
