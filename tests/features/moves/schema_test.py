from gdp_grappler.features.moves import schema


def test_names_are_unique_and_kinds_come_last():
  names = schema.names(['group', 'ball'])
  assert len(set(names)) == len(names)
  assert names[-2:] == ('kind:group', 'kind:ball')


def test_a_fingerprint_hangs_on_names_and_order():
  names = schema.names(['group'])
  assert schema.fingerprint(names) == schema.fingerprint(list(names))
  assert schema.fingerprint(names) != schema.fingerprint(names[::-1])
  assert schema.fingerprint(names) != schema.fingerprint(names[1:])
