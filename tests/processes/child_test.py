from gdp_grappler.processes import child


def test_calls_what_it_is_told_with_arguments_from_json(capsys):
  child.main('builtins:print', '"a b"', '[1, null]', '2.5')
  assert capsys.readouterr().out == 'a b [1, None] 2.5\n'
