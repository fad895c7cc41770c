from gdp_grappler.features.moves import schema


def test_names_are_unique_and_kinds_come_last():
  names = schema.names(['group', 'ball'])
  assert len(set(names)) == len(names)
  assert names[-2:] == ('kind:group', 'kind:ball')
