import pytest

from gdp_grappler import errors
from placer_model.training.moves import move_config


@pytest.mark.parametrize('changes', [{'rollouts': 0}, {'temperature':
    0.}, {'episode_prices': 1}, {'from_best': 2.}, {'search_trials': -1}])
def test_bad_numbers_are_refused(changes):
  [name] = changes
  with pytest.raises(errors.GdpError, match=name):
    move_config.MoveConfig(**changes)


def test_episodes_draw_and_price_as_the_config_says():
  episode = move_config.MoveConfig(episode_prices=9, at_once=2, draws=7).episode
  assert (episode.prices, episode.at_once, episode.draws) == (9, 2, 7)


def test_measuring_prices_a_fraction():
  config = move_config.MoveConfig()
  measured = move_config.for_measuring(config)
  assert measured.rollouts < config.rollouts
  assert measured.episode_prices < config.episode_prices
  assert not measured.search_trials and not measured.skill_drafts
