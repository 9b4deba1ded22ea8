"""Spot economics: how much of the saving of spot machines remains after interruptions, for each way to handle them.

    trace, synthetic_trace,
      published_trace                 which machines exist when (pure)
    costs, tally, blacklist, driver,
      kubelet, training               the model of training (pure)
    clock, time_shift, pool, world, ranks,
      contenders, replay, contest     play a trace to real control planes
    economics, svg, chart, report     bills, table, picture

docs/records/spot-economics.md says what is real, what is modelled, and where the limits are.
"""
