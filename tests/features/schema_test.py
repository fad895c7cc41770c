from gdp_grappler.features import schema


def test_fingerprint_changes_with_names_and_their_order(monkeypatch):
  before = schema.fingerprint()
  assert before == schema.fingerprint() and len(before) == 16
  monkeypatch.setattr(schema, 'UNIT_FEATURES', schema.UNIT_FEATURES[::-1])
  turned = schema.fingerprint()
  monkeypatch.setattr(schema, 'DEVICE_FEATURES', schema.DEVICE_FEATURES[1:])
  assert len({before, turned, schema.fingerprint()}) == 3


def test_names_are_unique():
  assert len(set(schema.UNIT_FEATURES)) == len(schema.UNIT_FEATURES)
  assert len(set(schema.DEVICE_FEATURES)) == len(schema.DEVICE_FEATURES)
