"""The webhook's answers: pure functions from objects to patches, warnings and verdicts.

`handlers` has a rule for each kind of request. `mutate` changes what the operator creates,
`validate` refuses mistakes of users, and `lint` warns of what is allowed and will not work. What a
capability adds is an `optional` rule.
"""
